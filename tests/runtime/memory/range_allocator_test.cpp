#include "runtime/memory/range_allocator.hpp"

#include "messages/errc.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

constexpr auto no_address = std::numeric_limits<uint64_t>::max();

using side = range_allocator::side;

uint64_t allocated(range_allocator& ranges, uint64_t bytes, uint64_t alignment = 1, side from = side::begin) {
  auto address = ranges.allocate(bytes, alignment, from);
  return address ? *address : no_address;
}

/// A byte a flag: what an allocator must do, as plainly as it can be said.
struct reference_memory {
  uint64_t begin;
  std::vector<bool> taken;

  bool fits(uint64_t at, uint64_t bytes) const {
    return at + bytes <= taken.size() && std::count(taken.begin() + at, taken.begin() + at + bytes, true) == 0;
  }

  uint64_t first_fit(uint64_t bytes, uint64_t alignment, side from) const {
    for (uint64_t i = 0; i < taken.size(); ++i)
      if (const auto at = from == side::begin ? i : taken.size() - 1 - i;
          (begin + at) % alignment == 0 && fits(at, bytes))
        return begin + at;
    return no_address;
  }

  void set(uint64_t address, uint64_t bytes, bool value) {
    std::fill_n(taken.begin() + (address - begin), bytes, value);
  }

  uint64_t largest() const {
    uint64_t best = 0;
    uint64_t run = 0;
    for (bool x : taken) {
      run = x ? 0 : run + 1;
      best = std::max(best, run);
    }
    return best;
  }
};

} // namespace

TEST_CASE("range_allocator: aligns, and leaves what it skips free") {
  range_allocator ranges{0x1001, 0x2000};
  CHECK(allocated(ranges, 16, 256) == 0x1100);
  CHECK(allocated(ranges, 0xff) == 0x1001);
  CHECK(ranges.used() == 16 + 0xff);
  CHECK(ranges.free_bytes() == 0xfff - 16 - 0xff);
}

TEST_CASE("range_allocator: gives out its last byte, then none") {
  range_allocator ranges{16, 32};
  CHECK(allocated(ranges, 16) == 16);
  CHECK(ranges.largest() == 0);
  CHECK(code_of(ranges.allocate(1, 1).error()) == errc::out_of_memory);
  range_allocator empty{16, 16};
  CHECK(code_of(empty.allocate(1, 1).error()) == errc::too_large);
}

TEST_CASE("range_allocator: says what was asked, what is free and what the largest block is") {
  range_allocator ranges{0, 100};
  CHECK(allocated(ranges, 30) == 0);
  CHECK(allocated(ranges, 10) == 30);
  CHECK(!ranges.free(0));
  auto text = render(ranges.allocate(61, 2).error());
  CHECK(contains(text, "61 bytes aligned to 2"));
  CHECK(contains(text, "90 of 100 bytes are free"));
  CHECK(contains(text, "largest block has 60"));
}

TEST_CASE("range_allocator: refuses zero bytes and odd alignments, and stays as it was") {
  range_allocator ranges{0, 100};
  CHECK(code_of(ranges.allocate(0, 1).error()) == errc::invalid_argument);
  for (uint64_t alignment : {0u, 3u, 24u})
    CHECK(code_of(ranges.allocate(1, alignment).error()) == errc::invalid_argument);
  CHECK(ranges.used() == 0);
}

TEST_CASE("range_allocator: does not wrap at the end of all addresses") {
  range_allocator ranges{no_address - 10, no_address};
  CHECK(code_of(ranges.allocate(1, uint64_t{1} << 63).error()) == errc::out_of_memory);
  CHECK(code_of(ranges.allocate(no_address, 1).error()) == errc::too_large);
  CHECK(allocated(ranges, 10) == no_address - 10);
  range_allocator first{0, 10};
  CHECK(code_of(first.allocate(11, 1, side::end).error()) == errc::too_large);
  CHECK(allocated(first, 4, 8, side::end) == 0);
  CHECK(code_of(first.allocate(6, 8, side::end).error()) == errc::out_of_memory);
}

TEST_CASE("range_allocator: frees only what starts an allocation, and only once") {
  range_allocator ranges{0x100, 0x200};
  CHECK(code_of(ranges.free(0x100)) == errc::invalid_argument);
  REQUIRE(allocated(ranges, 0x10) == 0x100);
  auto inside = ranges.free(0x104);
  CHECK(code_of(inside) == errc::invalid_argument);
  CHECK(contains(render(inside), "[0x100, 0x110)"));
  CHECK(code_of(ranges.free(0x110)) == errc::invalid_argument);
  CHECK(!ranges.free(0x100));
  CHECK(code_of(ranges.free(0x100)) == errc::invalid_argument);
}

TEST_CASE("range_allocator: merges neighbours whatever the order of the frees") {
  std::vector<uint64_t> order{0, 10, 20, 30};
  do {
    range_allocator ranges{0, 40};
    for (uint64_t address = 0; address < 40; address += 10)
      REQUIRE(allocated(ranges, 10) == address);
    for (auto address : order)
      REQUIRE(!ranges.free(address));
    CHECK(ranges.largest() == 40);
    CHECK(allocated(ranges, 40) == 0);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("range_allocator: agrees with a flag a byte on random calls") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    std::mt19937 random{seed};
    const uint64_t begin = random() % 64;
    range_allocator ranges{begin, begin + 300};
    reference_memory reference{begin, std::vector<bool>(300)};
    std::map<uint64_t, uint64_t> living;
    for (int call = 0; call < 500; ++call) {
      if (living.empty() || random() % 2 == 0) {
        const uint64_t bytes = 1 + random() % 60;
        const uint64_t alignment = uint64_t{1} << random() % 6;
        const auto from = random() % 3 == 0 ? side::end : side::begin;
        const auto expected = reference.first_fit(bytes, alignment, from);
        REQUIRE(allocated(ranges, bytes, alignment, from) == expected);
        if (expected != no_address) {
          reference.set(expected, bytes, true);
          living[expected] = bytes;
        }
      } else {
        const auto freed = std::next(living.begin(), random() % living.size());
        REQUIRE(!ranges.free(freed->first));
        reference.set(freed->first, freed->second, false);
        living.erase(freed);
      }
      REQUIRE(ranges.used() == uint64_t(std::count(reference.taken.begin(), reference.taken.end(), true)));
      REQUIRE(ranges.free_bytes() == 300 - ranges.used());
      REQUIRE(ranges.largest() == reference.largest());
    }
  }
}
