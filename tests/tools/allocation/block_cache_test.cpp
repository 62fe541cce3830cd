#include <algorithm>
#include <cstdint>
#include <cstring>
#include <doctest/doctest.h>
#include <new>
#include <thread>
#include <vector>

// The operators new and delete of tools/allocation/block_cache.cpp; under a sanitizer, the sanitizer's.

namespace {

struct block {
  unsigned char* bytes;
  size_t size;
  unsigned char mark;
};

/// Two blocks of each size, filled with marks.
std::vector<block> take_blocks(unsigned char mark) {
  std::vector<block> result;
  for (size_t size = 0; size < 1200; ++size)
    for (int i = 0; i < 2; ++i) {
      auto bytes = static_cast<unsigned char*>(::operator new(size));
      result.push_back({bytes, size, ++mark});
      std::memset(bytes, mark, size);
    }
  return result;
}

bool marks_are_there(const std::vector<block>& blocks) {
  return std::all_of(blocks.begin(), blocks.end(), [](auto& x) {
    return std::all_of(x.bytes, x.bytes + x.size, [&](auto byte) { return byte == x.mark; });
  });
}

void give_back(const std::vector<block>& blocks) {
  for (auto& x : blocks)
    ::operator delete(x.bytes);
}

} // namespace

TEST_CASE("block_cache: blocks are aligned, apart, and as large as was asked, new ones and those given back before") {
  for (unsigned char round = 0; round < 5; ++round) {
    auto blocks = take_blocks(round);
    CHECK(marks_are_there(blocks));
    CHECK(std::all_of(blocks.begin(), blocks.end(), [](auto& x) {
      return x.bytes != nullptr && reinterpret_cast<uintptr_t>(x.bytes) % alignof(std::max_align_t) == 0;
    }));
    std::sort(blocks.begin(), blocks.end(), [](auto& x, auto& y) { return x.bytes < y.bytes; });
    CHECK(std::adjacent_find(blocks.begin(), blocks.end(),
                             [](auto& x, auto& y) { return x.bytes + std::max<size_t>(x.size, 1) > y.bytes; })
          == blocks.end());
    if (round % 2 == 0)
      std::reverse(blocks.begin(), blocks.end());
    give_back(blocks);
  }
}

TEST_CASE("block_cache: what one thread takes another may give back, and use again") {
  for (int round = 0; round < 3; ++round) {
    std::vector<block> here, there;
    std::thread{[&] { there = take_blocks(7); }}.join(); // the blocks outlive the thread
    here = take_blocks(99);
    std::thread{[&] {
      give_back(here);
      here = take_blocks(50);
    }}.join();
    CHECK(marks_are_there(there));
    CHECK(marks_are_there(here));
    give_back(there);
    give_back(here);
  }
}

#ifndef __SANITIZE_ADDRESS__ // whose own allocation ends the process
TEST_CASE("block_cache: what is too large is refused") {
  volatile size_t too_much = SIZE_MAX / 2;
  CHECK_THROWS_AS(::operator delete(::operator new(too_much)), std::bad_alloc);
  CHECK(::operator new(too_much, std::nothrow) == nullptr);
}
#endif
