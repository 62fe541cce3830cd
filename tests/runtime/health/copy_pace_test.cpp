#include "runtime/health/copy_pace.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace ringmaster;
using namespace std::chrono_literals;

TEST_CASE("copy_pace: where pieces take next to nothing they become huge pages, and no more") {
  copy_pace x;
  for (uint64_t expected : {512u << 10, 1u << 20, 2u << 20, 2u << 20}) {
    CHECK(x.bytes() == expected);
    x.took(1ms);
  }
}

TEST_CASE(
  "copy_pace: on a way that has become slow they shrink, and stay where they neither hurry nor hold up others") {
  copy_pace x;
  x.took(1ms);
  x.took(25ms);
  CHECK(x.bytes() == 1u << 20);
  for (int i = 0; i < 5; ++i)
    x.took(1s);
  CHECK(x.bytes() == copy_pace::bytes_min);
}

TEST_CASE("copy_pace: two links of 100 MB/s, one behind the other, hold up others for less than 60 ms") {
  copy_pace x;
  for (int i = 0; i < 100; ++i) {
    auto under_way = 2.0 * static_cast<double>(x.bytes()); // bytes before and behind a piece, on one link at the worst
    auto seconds = (under_way + static_cast<double>(x.bytes())) / 100e6;
    CHECK(seconds < 0.06);
    x.took(std::chrono::nanoseconds{std::llround(seconds * 1e9)});
  }
  CHECK(x.bytes() == 512u << 10);
}
