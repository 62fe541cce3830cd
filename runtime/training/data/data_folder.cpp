#include "runtime/training/data/data_folder.hpp"

#include "messages/errc.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/text/utf8.hpp"
#include "runtime/training/data/byte_windows.hpp"
#include "runtime/training/data/cifar_images.hpp"
#include "runtime/training/data/idx_images.hpp"

#include <fmt/format.h>

namespace ringmaster::training {

namespace {

namespace fs = std::filesystem;

/// What a folder is looked through for, before it is taken for text.
struct known_format {
  std::string_view files; ///< For people.
  bool (*lies_in)(const fs::path& folder);
  caf::expected<opened_data> (*open)(const fs::path& folder);
};
constexpr known_format known_formats[] = {{idx_files, has_idx_images, open_idx_images},
                                          {cifar_files, has_cifar_images, open_cifar_images}};

/// Too short files stay: what they say is for others that read the folder.
void remark_short_ones(const std::vector<text_file>& files, uint32_t window, std::vector<std::string>& remarks) {
  for (auto& file : files)
    if (file.bytes().size() <= window)
      remarks.push_back(fmt::format("{}: it has {}, less than a window of {} and one more", printable(file.name),
                                    counted(file.bytes().size(), "byte"), window));
}

caf::expected<opened_data> open_text(const fs::path& folder, const text_options& opts) {
  auto found = read_text_folder(folder, opts.seed, opts.held_out_part);
  if (!found)
    return std::move(found.error());
  opened_data result;
  result.remarks = std::move(found->skipped);
  remark_short_ones(found->training, opts.window, result.remarks);
  remark_short_ones(found->held_out, opts.window, result.remarks);
  const auto stride = opts.stride == 0 ? opts.window : opts.stride;
  auto training = byte_windows::over(std::move(found->training), opts.window, stride);
  if (!training)
    return invalid(fmt::format("{}: {}", folder.string(), render(training.error())));
  auto held_out = byte_windows::over(std::move(found->held_out), opts.window, stride);
  if (!held_out)
    return invalid(fmt::format("{}, what is held out: {}", folder.string(), render(held_out.error())));
  result.training = std::move(*training);
  result.held_out = std::move(*held_out);
  return result;
}

} // namespace

caf::expected<opened_data> open_data_folder(const fs::path& folder, const text_options& opts) {
  std::error_code problem;
  if (!fs::is_directory(folder, problem))
    return make_error(errc::io_error,
                      fmt::format("{}: it is no folder{}", folder.string(), problem ? ": " + problem.message() : ""));
  std::string looked_for;
  const known_format* found = nullptr;
  for (auto& format : known_formats) {
    looked_for += fmt::format("{}; ", format.files);
    if (!format.lies_in(folder))
      continue;
    if (found != nullptr)
      return invalid(fmt::format("{}: there are {}, and {}: each kind needs a folder of its own", folder.string(),
                                 found->files, format.files));
    found = &format;
  }
  if (found != nullptr)
    return found->open(folder);
  auto text = open_text(folder, opts);
  if (!text && code_of(text.error()) == errc::invalid_argument)
    return invalid(fmt::format("{}; what is looked for in a folder: {}or else files of text", render(text.error()),
                               looked_for));
  return text;
}

} // namespace ringmaster::training
