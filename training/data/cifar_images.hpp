#pragma once

#include "training/data/data_set.hpp"

#include <caf/expected.hpp>

#include <filesystem>

namespace ringmaster::training {

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

} // namespace ringmaster::training
