#include "runtime/reduction/bulk_copy.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

using namespace ringmaster;

namespace {

std::vector<std::byte> random_bytes(size_t count) {
  std::mt19937_64 random{count};
  std::vector<std::byte> result(count);
  for (auto& x : result)
    x = static_cast<std::byte>(random());
  return result;
}

} // namespace

TEST_CASE("bulk copy: copies the range and nothing else, past the caches and through them") {
  const auto in = random_bytes(10'100);
  for (uint64_t touched_bytes : {uint64_t{0}, uint64_t{1} << 40})
    for (size_t bytes : {0, 1, 15, 63, 64, 65, 127, 128, 1000, 4096, 9999})
      for (size_t to : {0, 1, 16, 63})
        for (size_t from : {0, 1, 64}) {
          std::vector<std::byte> out(bytes + 200, std::byte{0xa5});
          auto right = out;
          std::copy_n(in.data() + from, bytes, right.data() + to);
          copy_bytes(out.data() + to, in.data() + from, bytes, touched_bytes);
          CHECK(out == right);
        }
}

TEST_CASE("bulk copy: large copies are written past the caches") {
  const size_t bytes = (12u << 20) + 1;
  REQUIRE(writes_past_caches(2 * bytes));
  const auto in = random_bytes(bytes);
  std::vector<std::byte> out(bytes);
  copy_bytes(out.data(), in.data(), bytes);
  CHECK(std::memcmp(out.data(), in.data(), bytes) == 0);
}

TEST_CASE("bulk copy: what is copied to itself stays") {
  const auto right = random_bytes(1000);
  auto bytes = right;
  copy_bytes(bytes.data(), bytes.data(), bytes.size());
  copy_bytes(bytes.data(), bytes.data(), bytes.size(), uint64_t{1} << 40);
  CHECK(bytes == right);
  copy_bytes(nullptr, nullptr, 0);
}
