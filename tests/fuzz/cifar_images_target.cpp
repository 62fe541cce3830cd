// The files of CIFAR-10 and CIFAR-100.
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/support/file_content.hpp"
#include "tests/support/temporary_directory.hpp"
#include "training/data/stored_images.hpp"

namespace ringmaster::fuzz {

namespace {

void read_cifar(std::string_view bytes) {
  static const test::temporary_directory dir;
  for (const auto* file : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                           "data_batch_5.bin", "test_batch.bin", "train.bin", "test.bin"})
    test::write_content(dir.path() / file, std::string{bytes});
  for (const auto& read : {training::open_cifar_images(dir.path()), training::open_cifar_100_images(dir.path())})
    if (read)
      (void)read->training->digest();
}

const fuzz_target fuzz_cifar_images{"cifar_images", read_cifar};

} // namespace

} // namespace ringmaster::fuzz
