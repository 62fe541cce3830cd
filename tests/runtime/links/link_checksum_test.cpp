#include "runtime/links/link_checksum.hpp"

#include <doctest/doctest.h>

#include <random>
#include <set>
#include <vector>

using namespace ringmaster;

namespace {

std::vector<std::byte> noise(size_t size) {
  std::mt19937_64 random{size + 1};
  std::vector<std::byte> result(size);
  for (auto& x : result)
    x = static_cast<std::byte>(random());
  return result;
}

} // namespace

TEST_CASE("link checksum: every flipped bit is detected, for any length") {
  for (size_t size : {1u, 7u, 8u, 9u, 31u, 32u, 33u, 71u, 200u}) {
    auto bytes = noise(size);
    std::set<uint64_t> seen{link_checksum(bytes)};
    for (size_t bit = 0; bit < 8 * size; ++bit) {
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
      CHECK(seen.insert(link_checksum(bytes)).second);
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    }
  }
}

TEST_CASE("link checksum: reordered bytes and additional zeros are detected") {
  auto bytes = noise(96);
  auto before = link_checksum(bytes);
  std::swap_ranges(bytes.begin(), bytes.begin() + 8, bytes.begin() + 32);
  CHECK(link_checksum(bytes) != before);
  std::vector<std::byte> zeros(256);
  std::set<uint64_t> seen;
  for (size_t size = 0; size <= zeros.size(); ++size)
    CHECK(seen.insert(link_checksum(std::span{zeros}.first(size))).second);
}

TEST_CASE("link checksum: the alignment of the bytes does not matter") {
  auto bytes = noise(300);
  std::vector<std::byte> moved(301);
  std::copy(bytes.begin(), bytes.end(), moved.begin() + 1);
  CHECK(link_checksum(bytes) == link_checksum(std::span{moved}.subspan(1)));
}
