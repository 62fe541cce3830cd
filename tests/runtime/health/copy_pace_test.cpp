#include "runtime/health/copy_pace.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace ringmaster;
using namespace std::chrono_literals;

TEST_CASE("copy_pace: pieces are huge pages where they take next to nothing; the first goes alone") {
  copy_pace x;
  CHECK(x.under_way_max() == 1);
  for (int i = 0; i < 4; ++i) {
    CHECK(x.bytes() == 2u << 20);
    x.took(1ms);
    CHECK(x.under_way_max() == 2);
  }
}

TEST_CASE("copy_pace: on a way that has become slow they shrink, to a limit, and grow again after it") {
  copy_pace x;
  x.took(50ms);
  CHECK(x.bytes() == 1u << 20);
  x.took(25ms);
  CHECK(x.bytes() == 1u << 20);
  for (int i = 0; i < 5; ++i)
    x.took(1s);
  CHECK(x.bytes() == copy_pace::bytes_min);
  x.took(1ms);
  CHECK(x.bytes() == 2 * copy_pace::bytes_min);
}

TEST_CASE("copy_pace: on two links of 100 MB/s, one behind the other, others wait for less than 60 ms") {
  copy_pace x;
  for (int i = 0; i < 100; ++i) {
    // A piece passes both links, and waits for the other one that is under way.
    auto under_way = static_cast<double>(x.bytes()) * static_cast<double>(x.under_way_max() + 1);
    auto seconds = under_way / 100e6;
    CHECK((i == 1 || seconds < 0.06)); // once two of the size of the first one may be under way
    x.took(std::chrono::nanoseconds{std::llround(seconds * 1e9)});
  }
  CHECK(x.bytes() <= 1u << 20);
}
