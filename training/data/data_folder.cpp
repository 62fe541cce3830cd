#include "training/data/data_folder.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/text/comma_list.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/text/utf8.hpp"
#include "training/data/stored_images.hpp"
#include "training/data/text_folder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>

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
                                          {cifar_files, has_cifar_images, open_cifar_images},
                                          {cifar_100_files, has_cifar_100_images, open_cifar_100_images}};

/// "MNIST's files; or CIFAR-10's; ..."
std::string looked_for() {
  std::vector<std::string_view> all;
  for (auto& format : known_formats)
    all.push_back(format.files);
  return fmt::format("{}", fmt::join(all, "; "));
}

/// Null: there are no images in it. Errors: invalid_argument, where there are some of two kinds.
caf::expected<const known_format*> format_in(const fs::path& folder) {
  const known_format* found = nullptr;
  for (auto& format : known_formats) {
    if (!format.lies_in(folder))
      continue;
    if (found != nullptr)
      return invalid(fmt::format("{}: there are {}, and {}: each kind needs a folder of its own", folder.string(),
                                 found->files, format.files));
    found = &format;
  }
  return found;
}

/// The folders within this one, each once, the nearest first, and the names of all files in these and in it.
struct looked_through {
  std::vector<fs::path> folders{};
  std::vector<fs::path> files{};
};

looked_through look_through(const fs::path& folder) {
  constexpr size_t levels_max = 4, entries_max = 100'000;
  looked_through result;
  std::set<fs::path> known; // links may lead back
  std::vector<fs::path> level{folder};
  size_t entries = 0;
  for (size_t depth = 0; depth <= levels_max && !level.empty(); ++depth) {
    std::vector<fs::path> next;
    for (auto& each : level) {
      std::error_code problem, ignored;
      if (!known.insert(fs::canonical(each, ignored)).second)
        continue;
      if (depth > 0)
        result.folders.push_back(each);
      for (fs::directory_iterator at{each, problem}, end; !problem && at != end && ++entries <= entries_max;
           at.increment(problem)) {
        if (at->path().filename().string().starts_with('.'))
          continue;
        if (at->is_directory(ignored))
          next.push_back(at->path());
        else
          result.files.push_back(at->path());
      }
    }
    std::ranges::sort(next);
    level = std::move(next);
  }
  std::ranges::sort(result.files);
  return result;
}

bool is_pickle(const fs::path& file) {
  std::ifstream in{file, std::ios::binary};
  return in.get() == 0x80; // protocol 2 and later
}

/// A form in which images are often stored, and which is not read.
struct other_form {
  std::string_view what;
  bool (*is_one)(const fs::path& file, const std::string& ending);
};
constexpr other_form other_forms[] = {
  {"a Python pickle, which is not read: CIFAR's binary version is needed, cifar-10-binary.tar.gz or "
   "cifar-100-binary.tar.gz",
   [](const fs::path& file, const std::string& ending) {
     return ending == ".pkl" || ending == ".pickle" || (ending.empty() && is_pickle(file));
   }},
  {"packed: unpack it first",
   [](const fs::path&, const std::string& ending) {
     return ending == ".gz" || ending == ".tgz" || ending == ".tar" || ending == ".zip" || ending == ".xz";
   }},
  {"a picture file, which is not read: images are read from files of the kinds above",
   [](const fs::path&, const std::string& ending) {
     return ending == ".png" || ending == ".jpg" || ending == ".jpeg" || ending == ".bmp" || ending == ".gif";
   }},
  {"a file of arrays, which is not read: images are read from files of the kinds above",
   [](const fs::path&, const std::string& ending) {
     return ending == ".npz" || ending == ".npy" || ending == ".parquet" || ending == ".mat" || ending == ".h5"
            || ending == ".hdf5" || ending == ".arrow";
   }},
  {"text, which models of text take, as bytes of ringmaster-train does",
   [](const fs::path&, const std::string& ending) {
     return ending == ".txt" || ending == ".md" || ending == ".cpp" || ending == ".hpp" || ending == ".py";
   }}};

/// "; DIR/data_batch_1 is a Python pickle, ..."; empty: nothing of that kind lies there.
std::string other_forms_in(const looked_through& all) {
  for (auto& form : other_forms)
    for (auto& file : all.files)
      if (form.is_one(file, file.extension().string()))
        return fmt::format("; {} is {}", printable(file.string()), form.what);
  return {};
}

/// Nothing: there are no images in the folders within. Errors: invalid_argument, where several of them have some, and
/// those of the formats.
caf::expected<std::optional<opened_data>> open_within(const looked_through& all) {
  std::vector<std::string> found;
  const known_format* format = nullptr;
  for (auto& folder : all.folders) {
    TRY(its, format_in(folder));
    if (*its == nullptr)
      continue;
    format = *its;
    found.push_back(folder.string());
  }
  if (found.empty())
    return std::optional<opened_data>{};
  if (found.size() > 1)
    return invalid(fmt::format("there are images in {} folders: name one, {}", found.size(), choice_text(found)));
  TRY(opened, format->open(found.front()));
  opened->found_in = found.front();
  return std::optional{std::move(*opened)};
}

/// Too short files stay: what they say is for others that read the folder.
void remark_short_ones(const std::vector<text_file>& files, uint32_t window, std::vector<std::string>& remarks) {
  for (auto& file : files)
    if (file.bytes().size() <= window)
      remarks.push_back(fmt::format("{}: it has {}, less than a window of {} and one more", printable(file.name),
                                    counted(file.bytes().size(), "byte"), window));
}

caf::expected<opened_data> open_text(const fs::path& folder, const text_options& opts) {
  TRY(found, read_text_folder(folder, opts.seed, opts.held_out_part));
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

caf::error no_folder(const fs::path& folder) {
  std::error_code problem;
  if (fs::is_directory(folder, problem))
    return caf::none;
  return make_error(errc::io_error,
                    fmt::format("{}: it is no folder{}", folder.string(), problem ? ": " + problem.message() : ""));
}

/// The data set that lies in the folder itself; nothing where its files are of no known format.
caf::expected<std::optional<opened_data>> open_own(const fs::path& folder) {
  RETURN_ERROR(no_folder(folder));
  TRY(found, format_in(folder));
  if (*found == nullptr)
    return std::optional<opened_data>{};
  TRY(opened, (*found)->open(folder));
  return std::optional{std::move(*opened)};
}

} // namespace

caf::expected<opened_data> open_data_folder(const fs::path& folder, const text_options& opts) {
  TRY(own, open_own(folder));
  if (*own)
    return std::move(**own);
  auto text = open_text(folder, opts);
  if (text || code_of(text.error()) != errc::invalid_argument)
    return text;
  const auto all = look_through(folder);
  TRY(within, open_within(all));
  if (*within)
    return std::move(**within);
  return invalid(fmt::format("{}: what is looked for in a folder, and in those within: {}; or else files of text{}; {}",
                             folder.string(), looked_for(), other_forms_in(all), render(text.error())));
}

caf::expected<opened_data> open_image_folder(const fs::path& folder) {
  if (has_idx_set(folder))
    return open_idx_set(folder);
  TRY(own, open_own(folder));
  if (*own)
    return std::move(**own);
  const auto all = look_through(folder);
  TRY(within, open_within(all));
  if (*within)
    return std::move(**within);
  return invalid(fmt::format("{}: there are no images that can be read; what is looked for there, and in the folders "
                             "within: {}{}",
                             folder.string(), looked_for(), other_forms_in(all)));
}

} // namespace ringmaster::training
