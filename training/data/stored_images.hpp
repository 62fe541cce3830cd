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

/// The binary versions of CIFAR-10 and CIFAR-100 (Krizhevsky 2009): files of records, each a label and 3 x 32 x 32
/// pixels, red first. CIFAR-100 has two labels in each, of which the second one, of 100, is taken.
inline constexpr std::string_view cifar_files = "data_batch_1.bin to data_batch_5.bin and test_batch.bin (CIFAR-10)",
                                  cifar_100_files = "train.bin and test.bin (CIFAR-100)";

/// Whether one of its files lies there; of CIFAR-100, whose files have usual names, both or one beside
/// fine_label_names.txt.
bool has_cifar_images(const std::filesystem::path& folder);
bool has_cifar_100_images(const std::filesystem::path& folder);
/// Errors: io_error for a file that is not there; corrupt, with file and byte and what would be right.
caf::expected<opened_data> open_cifar_images(const std::filesystem::path& folder);
caf::expected<opened_data> open_cifar_100_images(const std::filesystem::path& folder);

/// MNIST's four files, and what is stored as they are (LeCun, Cortes and Burges): train-images-idx3-ubyte,
/// train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, which are what is held out. Numbers are
/// big-endian: images begin with 0x00000803, their count, rows and columns, labels with 0x00000801 and their count.
inline constexpr std::string_view idx_files = "train-images-idx3-ubyte, train-labels-idx1-ubyte, "
                                              "t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte (MNIST)";

/// Whether one of them lies there, also where it is still packed; or one of a set whose files have its name before
/// that, "emnist-letters-train-images-idx3-ubyte", and "test" in place of "t10k".
bool has_idx_images(const std::filesystem::path& folder);
/// There are as many labels as the largest of all, and one for 0. Errors: io_error for a file that is not there;
/// corrupt, with file and byte and what would be right; invalid_argument where there are files of several sets.
caf::expected<opened_data> open_idx_images(const std::filesystem::path& folder);

/// The same of the set whose files' names begin so: "data/emnist-letters" of data/emnist-letters-train-images-...
bool has_idx_set(const std::filesystem::path& beginning);
caf::expected<opened_data> open_idx_set(const std::filesystem::path& beginning);

} // namespace ringmaster::training
