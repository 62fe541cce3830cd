#include "training/data/text_folder.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/links/link_checksum.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/text/utf8.hpp"
#include "training/data/mixed_bits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

namespace ringmaster::training {

namespace {

namespace fs = std::filesystem;

constexpr size_t folder_files_max = 1 << 20;

uint64_t number_of(std::string_view name, uint64_t seed) {
  uint64_t hash = 0xcbf29ce484222325;
  for (auto letter : name)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return mixed_bits(hash ^ mixed_bits(seed + 1));
}

bool is_below(uint64_t number, double part) {
  return static_cast<double>(number) * 0x1p-64 < part;
}

/// What lies below a folder, by paths from there.
struct folder_names {
  std::vector<std::string> files{};
  std::vector<std::string> skipped{}; ///< As text_folder has it.
};

/// Adds what is in the folder `below` the other one, and in those in it. Errors: of the system, where it cannot be
/// read.
std::error_code add_names(const fs::path& folder, const std::string& below, folder_names& to) {
  std::error_code problem, ignored;
  fs::directory_iterator at{folder / below, problem}, end;
  for (; !problem && at != end && to.files.size() <= folder_files_max; at.increment(problem)) {
    const auto name = at->path().filename().string(), path = below + name;
    const bool is_folder = at->is_directory(ignored);
    if (name.starts_with('.') || (is_folder && name == "build"))
      continue;
    if (at->is_regular_file(ignored))
      to.files.push_back(path);
    else if (!is_folder)
      to.skipped.push_back(printable(path) + ": it is no file, or a link to none");
    else if (at->is_symlink(ignored))
      to.skipped.push_back(printable(path) + ": links to folders are not followed");
    else if (auto why = add_names(folder, path + "/", to))
      to.skipped.push_back(fmt::format("{}/: cannot be read: {}", printable(path), why.message()));
  }
  return problem;
}

/// The names of all files below the folder, sorted, and what else is there.
caf::expected<folder_names> names_in(const fs::path& folder) {
  folder_names result;
  if (auto problem = add_names(folder, "", result))
    return make_error(errc::io_error, fmt::format("{}: cannot be read: {}", folder.string(), problem.message()));
  if (result.files.size() > folder_files_max)
    return invalid(fmt::format("{}: there are more than {} files; name a folder with the texts alone", folder.string(),
                               folder_files_max));
  std::ranges::sort(result.files);
  std::ranges::sort(result.skipped);
  return result;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Whether the bytes are text. Errors: corrupt.
caf::error check_text(std::span<const std::byte> bytes) {
  const auto text = without_byte_order_mark(as_text(bytes));
  if (text.empty())
    return malformed("it is empty");
  if (auto wrong = wide_encoding_problem(text))
    return malformed(render(wrong));
  return text.find('\0') != text.npos || !is_utf8(text) ? malformed("it is no text (UTF-8)") : caf::error{};
}

/// "; left out: a.bin: it is no text (UTF-8), and 3 more"; empty: nothing.
std::string text_of_skipped(const std::vector<std::string>& all) {
  constexpr size_t shown = 3;
  if (all.empty())
    return "";
  const std::span some{all.data(), std::min(shown, all.size())};
  return fmt::format("; left out: {}{}", fmt::join(some, "; "),
                     all.size() > shown ? fmt::format("; and {} more", all.size() - shown) : "");
}

/// Gives each side one file at least.
void divide(std::vector<text_file> files, uint64_t seed, double part, text_folder& target) {
  auto number = [&](const text_file& x) { return number_of(x.name, seed); };
  const auto [smallest, largest] = std::ranges::minmax_element(files, {}, number);
  const auto *always = &*smallest, *never = &*largest;
  for (auto& file : files) {
    const auto out = &file == always || (&file != never && is_below(number(file), part));
    (out ? target.held_out : target.training).push_back(std::move(file));
  }
}

} // namespace

bool is_held_out(std::string_view name, uint64_t seed, double part) {
  return is_below(number_of(name, seed), part);
}

caf::expected<text_folder> read_text_folder(const fs::path& folder, uint64_t seed, double held_out_part) {
  if (!(held_out_part > 0 && held_out_part < 1))
    return invalid(fmt::format("the part of the files that is held out must be between 0 and 1, and is {}",
                               held_out_part));
  TRY(names, names_in(folder));
  text_folder result;
  result.skipped = std::move(names->skipped);
  std::vector<text_file> files;
  for (auto& name : names->files) {
    auto content = file_bytes::of(folder / name);
    if (!content) {
      result.skipped.push_back(render(content.error()));
      continue;
    }
    const auto mark_bytes = byte_order_mark_bytes(as_text(content->bytes()));
    if (auto why = check_text(content->bytes()))
      result.skipped.push_back(fmt::format("{}: {}", printable(name), render(why)));
    else
      files.push_back({name, std::make_shared<const file_bytes>(std::move(*content)), mark_bytes});
  }
  if (files.size() < 2)
    return invalid(fmt::format("{}: there must be two files of text at least, since some are held out, and there {}{}",
                               folder.string(), files.empty() ? "is none" : "is only " + printable(files.front().name),
                               text_of_skipped(result.skipped)));
  divide(std::move(files), seed, held_out_part, result);
  return result;
}

byte_windows::byte_windows(std::vector<text_file> files, uint32_t window, uint32_t stride)
  : files_(std::move(files)), window_(window), stride_(stride) {
  for (auto& file : files_) {
    if (file.content->is_mapped())
      mapped_.push_back(file.content.get());
    const uint64_t bytes = file.bytes().size();
    ends_.push_back(ends_.back() + (bytes > window_ ? (bytes - window_ - 1) / stride_ + 1 : 0));
  }
}

caf::expected<std::shared_ptr<const byte_windows>> byte_windows::over(std::vector<text_file> files, uint32_t window,
                                                                      uint32_t stride) {
  for (auto length : {window, stride})
    if (length == 0 || length > window_max)
      return invalid(fmt::format("a window of text and the way to the next must be 1 to {} bytes, and one is {}",
                                 window_max, length));
  std::shared_ptr<const byte_windows> result{new byte_windows{std::move(files), window, stride}};
  const auto count = result->ends_.back();
  if (count == 0)
    return invalid(fmt::format("no file has a window of {} bytes and one more to predict", window));
  if (count > UINT32_MAX)
    return invalid(fmt::format("{} windows are more than {}: let them begin further apart than {} bytes", count,
                               UINT32_MAX, stride));
  return result;
}

uint64_t byte_windows::digest() const {
  std::call_once(is_digested_, [this] {
    std::vector<uint64_t> all{window_, stride_};
    for (auto& file : files_) {
      all.push_back(link_checksum(std::as_bytes(std::span{file.name})));
      all.push_back(link_checksum(file.bytes()));
    }
    digest_ = link_checksum(std::as_bytes(std::span{all}));
  });
  return digest_;
}

std::span<const std::byte> byte_windows::text_of(uint32_t sample) const {
  const auto end = std::ranges::upper_bound(ends_, uint64_t{sample}); // of the file that it is in
  const auto bytes = files_[static_cast<size_t>(end - ends_.begin()) - 1].bytes();
  return bytes.subspan((sample - *std::prev(end)) * stride_, window_ + 1);
}

void byte_windows::fill_one(uint32_t sample, std::span<float> input, std::span<uint32_t> labels) const {
  const auto text = text_of(sample);
  for (size_t i = 0; i < input.size(); ++i)
    input[i] = static_cast<float>(std::to_integer<uint8_t>(text[i]));
  for (size_t i = 0; i < labels.size(); ++i)
    labels[i] = std::to_integer<uint8_t>(text[i + 1]);
}

caf::error byte_windows::damage() const {
  for (auto* file : mapped_)
    RETURN_ERROR(file->damage());
  return caf::none;
}

} // namespace ringmaster::training
