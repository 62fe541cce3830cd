#include "runtime/training/data/cifar_images.hpp"

#include "messages/errc.hpp"
#include "runtime/training/data/stored_images.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ringmaster::training {

namespace {

namespace fs = std::filesystem;

constexpr std::array cifar_training{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                                    "data_batch_5.bin"};
constexpr std::array cifar_held_out{"test_batch.bin"};
constexpr sample_shape cifar_shape{3, 32, 32};

caf::error add_records(const fs::path& file, std::span<const std::byte> bytes, std::vector<stored_image>& images) {
  const auto record = 1 + cifar_shape.elements();
  if (bytes.empty() || bytes.size() % record != 0)
    return malformed(fmt::format("{}, byte {}: the file ends within record {}: each is a label and {} pixels, {} bytes",
                                 file.string(), bytes.size(), bytes.size() / record, cifar_shape.text(), record));
  for (size_t offset = 0; offset < bytes.size(); offset += record) {
    auto label = label_at(file, bytes, offset, offset / record);
    if (!label)
      return std::move(label.error());
    images.push_back({bytes.data() + offset + 1, *label});
  }
  return caf::none;
}

caf::expected<std::shared_ptr<const data_set>> read_batches(const fs::path& folder,
                                                            std::span<const char* const> names) {
  std::vector<file_bytes> files;
  std::vector<stored_image> images;
  for (auto* name : names) {
    auto content = file_bytes::of(folder / name);
    if (!content)
      return std::move(content.error());
    files.push_back(std::move(*content));
    if (auto problem = add_records(folder / name, files.back().bytes(), images))
      return problem;
  }
  return std::make_shared<const stored_images>("CIFAR-10", cifar_shape, std::move(files), std::move(images));
}

} // namespace

bool has_cifar_images(const fs::path& folder) {
  auto lies_there = [&](auto* name) {
    std::error_code ignored;
    return fs::exists(folder / name, ignored);
  };
  return std::ranges::any_of(cifar_training, lies_there) || std::ranges::any_of(cifar_held_out, lies_there);
}

caf::expected<opened_data> open_cifar_images(const fs::path& folder) {
  auto training = read_batches(folder, cifar_training);
  if (!training)
    return std::move(training.error());
  auto held_out = read_batches(folder, cifar_held_out);
  if (!held_out)
    return std::move(held_out.error());
  return opened_data{std::move(*training), std::move(*held_out)};
}

} // namespace ringmaster::training
