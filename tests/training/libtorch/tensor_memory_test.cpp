// Where libtorch has the numbers of its tensors from, once a program has layers of libtorch's.
#include "training/libtorch/libtorch_models.hpp"

#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <vector>

TEST_CASE("libtorch: a tensor's memory is aligned, its own, and there or a sentence") {
  REQUIRE(ringmaster::training::libtorch_linear(2, 2) != nullptr); // by what brings a program the layers
  auto& from = *c10::GetAllocator(c10::kCPU);
  std::vector<c10::DataPtr> held;
  for (size_t bytes = 1; bytes < 3000; bytes += 13) {
    held.push_back(from.allocate(bytes));
    CHECK(reinterpret_cast<uintptr_t>(held.back().get()) % 64 == 0);
    std::memset(held.back().get(), static_cast<int>(held.size() % 256), bytes);
  }
  for (size_t i = 0, bytes = 1; i < held.size(); ++i, bytes += 13) {
    const std::vector<char> wanted(bytes, static_cast<char>((i + 1) % 256));
    CHECK(std::memcmp(held[i].get(), wanted.data(), bytes) == 0);
  }
  CHECK(from.allocate(0).get() == nullptr);
  from.raw_deallocate(from.raw_allocate(0));
  from.raw_deallocate(from.raw_allocate(100));
  for (auto bytes : {SIZE_MAX, SIZE_MAX - 63, SIZE_MAX / 2})
    CHECK_THROWS_AS(from.allocate(bytes), c10::Error);
}
