#include "tools/console/own_memory.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <sys/mman.h>

using namespace ringmaster;

TEST_CASE("own memory: grows by what is touched, in bytes, and shrinks when it goes") {
  constexpr size_t bytes = 256u << 20;
  constexpr auto slack = 32.0 * (1 << 20);
  auto* mapping = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(mapping != MAP_FAILED);
  const auto before = static_cast<double>(own_memory_bytes());
  std::memset(mapping, 1, bytes);
  const auto touched = static_cast<double>(own_memory_bytes());
  ::munmap(mapping, bytes);
  const auto after = static_cast<double>(own_memory_bytes());
  CHECK(std::abs(touched - before - bytes) < slack);
  CHECK(std::abs(after - before) < slack);
}
