#include "training/data/idx_images.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/text/comma_list.hpp"
#include "training/data/stored_images.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace ringmaster::training {

namespace {

namespace fs = std::filesystem;

/// What a file's name ends with.
constexpr std::string_view training_images = "train-images-idx3-ubyte", training_labels = "train-labels-idx1-ubyte",
                           held_out_images = "t10k-images-idx3-ubyte", held_out_labels = "t10k-labels-idx1-ubyte";
constexpr std::array all_files{training_images, training_labels, held_out_images, held_out_labels};

/// As the files are often shared: with a dot before "idx", or with "test" in place of "t10k".
std::vector<std::string> spellings_of(std::string_view name) {
  std::vector<std::string> result{std::string{name}};
  if (name.starts_with("t10k"))
    result.push_back(fmt::format("test{}", name.substr(4)));
  for (size_t i = 0, count = result.size(); i < count; ++i) {
    result.push_back(result[i]);
    result.back()[result.back().find("-idx")] = '.';
  }
  return result;
}

/// The beginnings of the sets' names whose files lie in a folder: "", "emnist-letters-".
std::set<std::string> sets_in(const fs::path& folder) {
  std::set<std::string> result;
  std::error_code problem;
  for (fs::directory_iterator at{folder, problem}, end; !problem && at != end; at.increment(problem)) {
    auto name = at->path().filename().string();
    if (name.ends_with(".gz"))
      name.resize(name.size() - 3);
    for (auto file : all_files)
      for (auto& spelling : spellings_of(file)) {
        const auto before = name.size() - std::min(name.size(), spelling.size());
        if (name.ends_with(spelling) && (before == 0 || name[before - 1] == '-' || name[before - 1] == '_'))
          result.insert(name.substr(0, before));
      }
  }
  return result;
}

bool is_there(const fs::path& file) {
  std::error_code ignored;
  return fs::exists(file, ignored) || fs::exists(file.string() + ".gz", ignored);
}

/// One set's file in a folder, by any spelling of its name; by its own where there is none.
fs::path file_in(const fs::path& folder, const std::string& set, std::string_view name) {
  for (auto& spelling : spellings_of(name))
    if (auto file = folder / (set + spelling); is_there(file))
      return file;
  return folder / fmt::format("{}{}", set, name);
}

caf::error wrong_at(const fs::path& file, size_t offset, const std::string& sentence) {
  return malformed(fmt::format("{}, byte {}: {}", file.string(), offset, sentence));
}

uint32_t big_endian(std::span<const std::byte> bytes, size_t offset) {
  uint32_t result = 0;
  for (size_t i = 0; i < 4; ++i)
    result = result << 8 | std::to_integer<uint32_t>(bytes[offset + i]);
  return result;
}

/// A file of one magic number and `Sides` sizes, the count first, before the bytes.
template <size_t Sides>
struct idx_file {
  fs::path file;
  file_bytes content;
  std::array<uint32_t, Sides> sides{};

  static constexpr size_t header = 4 + 4 * Sides;
  std::span<const std::byte> bytes() const { return content.bytes(); }

  static caf::expected<idx_file> read(const fs::path& file) {
    std::error_code ignored;
    if (auto packed = file.string() + ".gz"; !fs::exists(file, ignored) && fs::exists(packed, ignored))
      return make_error(errc::io_error, fmt::format("{0}: it is packed; `gunzip {0}` unpacks it", packed));
    TRY(content, file_bytes::of(file));
    idx_file result{file, std::move(*content)};
    RETURN_ERROR(result.read_header());
    return result;
  }

private:
  caf::error read_header() {
    constexpr uint32_t magic = 0x800 + Sides; // unsigned bytes, in `Sides` dimensions
    if (bytes().size() < header)
      return wrong_at(file, bytes().size(), fmt::format("the file ends within its header, which has {} bytes", header));
    if (auto found = big_endian(bytes(), 0); found >> 16 == 0x1f8b)
      return wrong_at(file, 0, "it is packed by gzip: `gunzip` makes the file that can be read");
    else if (found != magic)
      return wrong_at(file, 0, fmt::format("the magic number must be 0x{:08x}, and is 0x{:08x}", magic, found));
    uint64_t each = 1;
    for (size_t i = 0; i < Sides; ++i) {
      constexpr uint32_t side_max = 1 << 16;
      sides[i] = big_endian(bytes(), 4 + 4 * i);
      if (sides[i] == 0 || (i > 0 && sides[i] > side_max))
        return wrong_at(file, 4 + 4 * i,
                        fmt::format("the {} must be {}, and is {}", i == 0 ? "count" : "image's side",
                                    i == 0 ? "1 or more" : fmt::format("1 to {}", side_max), sides[i]));
      each *= i == 0 ? 1 : sides[i];
    }
    const auto right = (bytes().size() - header) / each == sides[0] && (bytes().size() - header) % each == 0;
    if (!right)
      return wrong_at(file, bytes().size(),
                      fmt::format("the file ends here, and by its header must do so at byte {}: {} of header, {} x {} "
                                  "after it",
                                  header + sides[0] * each, header, sides[0], each));
    return caf::none;
  }
};

/// Images and their labels, of what is learned or of what is held out.
struct idx_half {
  fs::path file;
  sample_shape shape;
  std::vector<file_bytes> files{};
  std::vector<stored_image> images{};

  std::shared_ptr<const data_set> with(uint32_t labels) && {
    return std::make_shared<const stored_images>("IDX images", shape, std::move(files), std::move(images), labels);
  }
};

caf::expected<idx_half> read_half(const fs::path& images_file, const fs::path& labels_file) {
  TRY(images, idx_file<3>::read(images_file));
  TRY(labels, idx_file<1>::read(labels_file));
  const auto [count, rows, columns] = images->sides;
  if (labels->sides[0] != count)
    return wrong_at(labels->file, 4,
                    fmt::format("there must be {} labels, one for each image in {}, and there are {}", count,
                                images_file.filename().string(), labels->sides[0]));
  idx_half result{images_file, {1, rows, columns}};
  result.images.resize(count);
  for (size_t i = 0; i < count; ++i)
    result.images[i] = {images->bytes().data() + images->header + i * rows * columns,
                        std::to_integer<uint8_t>(labels->bytes()[labels->header + i])};
  result.files.push_back(std::move(images->content));
  return result;
}

caf::expected<opened_data> open_set(const fs::path& folder, const std::string& set) {
  const auto file = [&](std::string_view name) { return file_in(folder, set, name); };
  TRY(training, read_half(file(training_images), file(training_labels)));
  TRY(held_out, read_half(file(held_out_images), file(held_out_labels)));
  if (held_out->shape != training->shape)
    return wrong_at(held_out->file, 8,
                    fmt::format("images must be {}, as in {}, and are {}", training->shape.text(),
                                training->file.filename().string(), held_out->shape.text()));
  const auto labels = std::max(label_count_of(training->images), label_count_of(held_out->images));
  return opened_data{std::move(*training).with(labels), std::move(*held_out).with(labels)};
}

/// "emnist-letters-" of "data/emnist-letters", where files begin so; empty: none do.
std::string set_of(const fs::path& beginning) {
  const auto name = beginning.filename().string();
  for (auto& set : sets_in(beginning.has_parent_path() ? beginning.parent_path() : fs::path{"."}))
    if (!name.empty() && (set == name || set == name + "-" || set == name + "_"))
      return set;
  return {};
}

} // namespace

bool has_idx_images(const fs::path& folder) {
  return !sets_in(folder).empty();
}

caf::expected<opened_data> open_idx_images(const fs::path& folder) {
  const auto sets = sets_in(folder);
  if (sets.size() < 2 || sets.contains("")) // else those of MNIST's own names
    return open_set(folder, sets.size() == 1 ? *sets.begin() : "");
  std::vector<std::string> names;
  for (auto& set : sets)
    names.push_back((folder / set.substr(0, set.size() - 1)).string());
  return invalid(fmt::format("{}: there are {} sets of images: name one, {}", folder.string(), names.size(),
                             choice_text(names)));
}

bool has_idx_set(const fs::path& beginning) {
  return !set_of(beginning).empty();
}

caf::expected<opened_data> open_idx_set(const fs::path& beginning) {
  return open_set(beginning.has_parent_path() ? beginning.parent_path() : fs::path{"."}, set_of(beginning));
}

} // namespace ringmaster::training
