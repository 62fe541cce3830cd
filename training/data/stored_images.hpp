#pragma once

#include "training/data/data_set.hpp"
#include "training/data/file_bytes.hpp"

#include <caf/expected.hpp>

#include <filesystem>
#include <mutex>
#include <string_view>

namespace ringmaster::training {

/// An image in a file: a byte for each pixel.
struct stored_image {
  const std::byte* pixels = nullptr; ///< One for each element of the shape.
  uint8_t label = 0;
};

/// Images as files have them, one label each. Pixels become 0 to 1: they are divided by 255.
class stored_images final : public data_set {
public:
  /// `files`: where the images' pixels lie. `labels`: how many there are; each image's is below that.
  stored_images(std::string_view name, sample_shape shape, std::vector<file_bytes> files,
                std::vector<stored_image> images, uint32_t labels)
    : name_(name), shape_(shape), files_(std::move(files)), images_(std::move(images)), labels_(labels) {}

  std::string name() const override { return name_; }
  uint32_t count() const override { return static_cast<uint32_t>(images_.size()); }
  sample_shape shape() const override { return shape_; }
  uint32_t label_count() const override { return labels_; }
  uint64_t digest() const override;

private:
  void fill_one(uint32_t sample, std::span<float> input, std::span<uint32_t> labels) const override;
  caf::error damage() const override;

  std::string name_;
  sample_shape shape_;
  std::vector<file_bytes> files_;
  std::vector<stored_image> images_;
  uint32_t labels_;
  mutable std::once_flag is_digested_;
  mutable uint64_t digest_ = 0;
};

/// One more than the largest label of these.
uint32_t label_count_of(std::span<const stored_image> images);

} // namespace ringmaster::training
