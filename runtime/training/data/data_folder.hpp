#pragma once

#include "runtime/training/data/data_set.hpp"

#include <caf/expected.hpp>

#include <filesystem>

namespace ringmaster::training {

/// How a folder of text becomes samples; images have all that in their files.
struct text_options {
  uint32_t window = 64;       ///< Bytes of a sample.
  uint32_t stride = 0;        ///< Bytes from a window's begin to the next; 0: the window's.
  uint64_t seed = 1234;       ///< Of what is held out.
  double held_out_part = 0.1; ///< Of the files, about.
};

/// The data that lies in a folder: MNIST's files, or CIFAR-10's, or else any text. Errors: as of those; io_error where
/// it is no folder; invalid_argument, with all that was looked for, where there is nothing, and where there are images
/// of both kinds.
caf::expected<opened_data> open_data_folder(const std::filesystem::path& folder, const text_options& opts = {});

} // namespace ringmaster::training
