#pragma once

#include "tests/support/temporary_directory.hpp"

#include <cstdint>
#include <fstream>
#include <string>

namespace ringmaster::test {

/// A directory with small files as data sets come in.
struct image_folder {
  temporary_directory directory;

  const std::filesystem::path& path() const { return directory.path(); }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream{path() / name, std::ios::binary} << bytes;
  }
  /// What is to be wrong in a file that is there.
  void overwrite(const std::string& name, std::streamoff offset, const std::string& bytes) const {
    std::fstream file{path() / name, std::ios::binary | std::ios::in | std::ios::out};
    file.seekp(offset);
    file << bytes;
  }
  void cut(const std::string& name, uintmax_t bytes) const { std::filesystem::resize_file(path() / name, bytes); }

  static std::string big_endian(uint32_t x) {
    return {static_cast<char>(x >> 24), static_cast<char>(x >> 16), static_cast<char>(x >> 8), static_cast<char>(x)};
  }

  /// Images of 2 x 3: image i has label i % 10, and pixel j of it is 10 i + j.
  void write_idx(uint32_t training, uint32_t held_out) const {
    for (auto [prefix, count] : {std::pair{"train", training}, std::pair{"t10k", held_out}}) {
      auto images = big_endian(0x803) + big_endian(count) + big_endian(2) + big_endian(3);
      auto labels = big_endian(0x801) + big_endian(count);
      for (uint32_t i = 0; i < count; ++i) {
        labels += static_cast<char>(i % 10);
        for (uint32_t j = 0; j < 6; ++j)
          images += static_cast<char>(10 * i + j);
      }
      write(std::string{prefix} + "-images-idx3-ubyte", images);
      write(std::string{prefix} + "-labels-idx1-ubyte", labels);
    }
  }

  /// Two records a file, of which the first has the label `file` and the second label 9, and pixels their number mod
  /// 251.
  void write_cifar() const {
    for (int file = 1; file <= 6; ++file) {
      std::string bytes;
      for (auto label : {file, 9}) {
        bytes += static_cast<char>(label);
        for (int i = 0; i < 3072; ++i)
          bytes += static_cast<char>(i % 251);
      }
      write(file == 6 ? "test_batch.bin" : "data_batch_" + std::to_string(file) + ".bin", bytes);
    }
  }
};

} // namespace ringmaster::test
