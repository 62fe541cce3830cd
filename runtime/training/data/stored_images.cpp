#include "runtime/training/data/stored_images.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

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
    if (auto problem = file.damage())
      return problem;
  return caf::none;
}

caf::expected<uint8_t> label_at(const std::filesystem::path& file, std::span<const std::byte> bytes, size_t offset,
                                uint64_t sample) {
  const auto label = std::to_integer<uint8_t>(bytes[offset]);
  if (label >= stored_images::known_labels)
    return malformed(fmt::format("{}, byte {}: the label of sample {} must be 0 to {}, and is {}", file.string(),
                                 offset, sample, stored_images::known_labels - 1, label));
  return label;
}

} // namespace ringmaster::training
