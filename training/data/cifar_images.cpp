#include "training/data/cifar_images.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "training/data/stored_images.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ringmaster::training {

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

} // namespace ringmaster::training
