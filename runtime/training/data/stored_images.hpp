#pragma once

#include "runtime/training/data/data_set.hpp"
#include "runtime/training/data/file_bytes.hpp"

#include <caf/expected.hpp>

#include <filesystem>
#include <string_view>

namespace ringmaster::training {

/// An image in a file: a byte for each pixel.
struct stored_image {
  const std::byte* pixels = nullptr; ///< As many as the shape has elements.
  uint8_t label = 0;                 ///< Below 10.
};

/// Images as files have them, one of ten labels each. Pixels become 0 to 1: they are divided by 255.
class stored_images final : public data_set {
public:
  static constexpr uint32_t known_labels = 10;

  /// `files`: where the images' pixels lie.
  stored_images(std::string_view name, sample_shape shape, std::vector<file_bytes> files,
                std::vector<stored_image> images)
    : name_(name), shape_(shape), files_(std::move(files)), images_(std::move(images)) {}

  std::string name() const override { return name_; }
  uint32_t count() const override { return static_cast<uint32_t>(images_.size()); }
  sample_shape shape() const override { return shape_; }
  uint32_t label_count() const override { return known_labels; }

private:
  void fill_one(uint32_t sample, std::span<float> input, std::span<uint32_t> labels) const override;
  caf::error damage() const override;

  std::string name_;
  sample_shape shape_;
  std::vector<file_bytes> files_;
  std::vector<stored_image> images_;
};

/// The label that stands at `offset` of the file. Errors: corrupt, naming the byte, where it is above 9.
caf::expected<uint8_t> label_at(const std::filesystem::path& file, std::span<const std::byte> bytes, size_t offset,
                                uint64_t sample);

} // namespace ringmaster::training
