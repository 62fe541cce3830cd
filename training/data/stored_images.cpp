#include "training/data/stored_images.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/links/link_checksum.hpp"
#include "runtime/text/comma_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace ringmaster::training {

void stored_images::fill_one(uint32_t sample, std::span<float> input, std::span<uint32_t> labels) const {
  const auto& image = images_[sample];
  for (size_t i = 0; i < input.size(); ++i)
    input[i] = static_cast<float>(std::to_integer<uint8_t>(image.pixels[i])) / 255;
  if (!labels.empty())
    labels.front() = image.label;
}

caf::error stored_images::damage() const {
  for (auto& file : files_)
    RETURN_ERROR(file.damage());
  return caf::none;
}

uint64_t stored_images::digest() const {
  std::call_once(is_digested_, [this] {
    std::vector<uint64_t> all{images_.size(), labels_};
    for (auto& file : files_)
      all.push_back(link_checksum(file.bytes()));
    std::vector<uint8_t> labels; // IDX images have them in a file of their own
    for (auto& image : images_)
      labels.push_back(image.label);
    all.push_back(link_checksum(std::as_bytes(std::span{labels})));
    digest_ = link_checksum(std::as_bytes(std::span{all}));
  });
  return digest_;
}

uint32_t label_count_of(std::span<const stored_image> images) {
  uint32_t result = 0;
  for (auto& image : images)
    result = std::max(result, uint32_t{image.label} + 1);
  return result;
}

namespace {

namespace fs = std::filesystem;

constexpr sample_shape cifar_shape{3, 32, 32};
constexpr std::array batches{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                             "data_batch_5.bin"};
constexpr std::array test_batch{"test_batch.bin"}, train_file{"train.bin"}, test_file{"test.bin"};

struct cifar_version {
  std::string_view name;
  std::span<const char*const> training, held_out;
  uint32_t labels;
  size_t label_bytes; ///< Before the pixels of a record; the last one is the label.
};
constexpr cifar_version cifar_10{"CIFAR-10", batches, test_batch, 10, 1},
  cifar_100{"CIFAR-100", train_file, test_file, 100, 2};

caf::error add_records(const cifar_version& of, const fs::path& file, std::span<const std::byte> bytes,
                       std::vector<stored_image>& images) {
  const auto record = of.label_bytes + cifar_shape.elements();
  if (bytes.empty() || bytes.size() % record != 0)
    return malformed(fmt::format("{}, byte {}: the file ends within record {}: each is {} and {} pixels, {} bytes",
                                 file.string(), bytes.size(), bytes.size() / record,
                                 of.label_bytes == 1 ? "a label" : "two labels", cifar_shape.text(), record));
  for (size_t offset = 0; offset < bytes.size(); offset += record) {
    const auto at = offset + of.label_bytes - 1;
    const auto label = std::to_integer<uint8_t>(bytes[at]);
    if (label >= of.labels)
      return malformed(fmt::format("{}, byte {}: the label of sample {} must be 0 to {}, and is {}: {} has {} classes",
                                   file.string(), at, offset / record, of.labels - 1, label, of.name, of.labels));
    images.push_back({bytes.data() + at + 1, label});
  }
  return caf::none;
}

caf::expected<std::shared_ptr<const data_set>> read_files(const cifar_version& of, const fs::path& folder,
                                                          std::span<const char* const> names) {
  std::vector<file_bytes> files;
  std::vector<stored_image> images;
  for (auto* name : names) {
    TRY(content, file_bytes::of(folder / name));
    files.push_back(std::move(*content));
    RETURN_ERROR(add_records(of, folder / name, files.back().bytes(), images));
  }
  return std::make_shared<const stored_images>(of.name, cifar_shape, std::move(files), std::move(images), of.labels);
}

caf::expected<opened_data> open_version(const cifar_version& of, const fs::path& folder) {
  TRY(training, read_files(of, folder, of.training));
  TRY(held_out, read_files(of, folder, of.held_out));
  return opened_data{std::move(*training), std::move(*held_out)};
}

bool lies_there(const fs::path& folder, const char* name) {
  std::error_code ignored;
  return fs::exists(folder / name, ignored);
}

} // namespace

bool has_cifar_images(const fs::path& folder) {
  const auto is_there = [&](auto* name) { return lies_there(folder, name); };
  return std::ranges::any_of(cifar_10.training, is_there) || std::ranges::any_of(cifar_10.held_out, is_there);
}

bool has_cifar_100_images(const fs::path& folder) {
  return lies_there(folder, "train.bin") + lies_there(folder, "test.bin") + lies_there(folder, "fine_label_names.txt")
         >= 2;
}

caf::expected<opened_data> open_cifar_images(const fs::path& folder) {
  return open_version(cifar_10, folder);
}

caf::expected<opened_data> open_cifar_100_images(const fs::path& folder) {
  return open_version(cifar_100, folder);
}

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
