#pragma once

#include "runtime/training/data/data_set.hpp"

#include <caf/expected.hpp>

#include <filesystem>

namespace ringmaster::training {

/// CIFAR-10's binary version (Krizhevsky 2009): files of records, each a label and 3 x 32 x 32 pixels, red first. What
/// is held out is test_batch.bin.
inline constexpr std::string_view cifar_files = "data_batch_1.bin to data_batch_5.bin and test_batch.bin (CIFAR-10)";

/// Whether one of them lies there.
bool has_cifar_images(const std::filesystem::path& folder);
/// Errors: io_error for a file that is not there; corrupt, with file and byte and what would be right.
caf::expected<opened_data> open_cifar_images(const std::filesystem::path& folder);

} // namespace ringmaster::training
