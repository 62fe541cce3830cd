// MNIST's files.
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/support/file_content.hpp"
#include "tests/support/temporary_directory.hpp"
#include "training/data/stored_images.hpp"

namespace ringmaster::fuzz {

namespace {

/// Two parts: the images' file and the labels', the same of both sets.
void read_idx(std::string_view bytes) {
  static const test::temporary_directory dir;
  input_parts parts{bytes};
  const std::string images{parts.part()}, labels{parts.rest()};
  for (const auto* of : {"train", "t10k"}) {
    test::write_content(dir.path() / (std::string{of} + "-images-idx3-ubyte"), images);
    test::write_content(dir.path() / (std::string{of} + "-labels-idx1-ubyte"), labels);
  }
  const auto read = training::open_idx_images(dir.path());
  if (read)
    (void)read->training->digest();
}

const fuzz_target fuzz_idx_images{"idx_images", read_idx};

} // namespace

} // namespace ringmaster::fuzz
