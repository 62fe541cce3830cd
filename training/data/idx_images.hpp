#pragma once

#include "training/data/data_set.hpp"

#include <caf/expected.hpp>

#include <filesystem>

namespace ringmaster::training {

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
