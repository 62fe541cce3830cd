#include "training/data/stored_images.hpp"

#include "messages/try.hpp"
#include "runtime/links/link_checksum.hpp"

#include <algorithm>

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

} // namespace ringmaster::training
