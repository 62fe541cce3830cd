#pragma once

#include "training/data/data_set.hpp"

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

/// The data that lies in a folder: images as MNIST's, CIFAR-10's or CIFAR-100's files have them, or else any text, or
/// else such images in one of the folders within. Errors: as of those; io_error where it is no folder;
/// invalid_argument, with all that was looked for, where there is nothing, and where there are images of several kinds.
caf::expected<opened_data> open_data_folder(const std::filesystem::path& folder, const text_options& opts = {});

/// The images that lie in a folder, or in one of the folders within, up to four levels down; of a set of IDX images
/// also how its files' names begin. Errors: the same; what there is in a form that is not read, as pickles, is named.
caf::expected<opened_data> open_image_folder(const std::filesystem::path& folder);

} // namespace ringmaster::training
