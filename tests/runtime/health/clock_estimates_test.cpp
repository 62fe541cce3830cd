#include "runtime/health/clock_estimates.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

namespace {

constexpr uint64_t noon = 1'767'225'600'000'000'000, ms_ns = 1'000'000;

} // namespace

TEST_CASE("clock estimates: the truth is within the error, no matter which way took the time") {
  constexpr int64_t before = 7'000'000'000; // theirs is 7 s before ours
  for (uint64_t there : {0, 1, 3, 10})
    for (uint64_t back : {0, 1, 4, 10}) {
      auto asked = noon, answered = noon + (there + back) * ms_ns;
      auto found = clock_offset::of(asked, asked + there * ms_ns + before, answered);
      CHECK(std::abs(found.offset_ns - before) <= static_cast<int64_t>(found.error_ns));
      CHECK(found.error_ns == (there + back) * ms_ns / 2);
    }
  CHECK(clock_offset::of(noon, noon - 5 * ms_ns, noon + 2 * ms_ns).offset_ns == -6'000'000); // behind
}

TEST_CASE("clock estimates: told are the first, those that are much better, and what is fresh when all is old") {
  clock_estimates x;
  auto heard = [&, number = uint64_t{0}](uint64_t at_ms, uint64_t took_ms) mutable {
    x.asked(++number, noon + at_ms * ms_ns);
    return x.answered({3}, number, noon, noon + (at_ms + took_ms) * ms_ns);
  };
  auto first = heard(0, 10);
  REQUIRE(first);
  CHECK(first->node_id() == 3);
  CHECK(first->error_ns() == 5 * ms_ns);
  CHECK_FALSE(heard(100, 10));
  CHECK_FALSE(heard(200, 6)); // a little better
  CHECK(heard(300, 4));
  CHECK_FALSE(heard(400, 50));
  CHECK_FALSE(heard(100'000, 50)); // old, but this is no better
  CHECK(heard(100'100, 6));
  CHECK_FALSE(heard(100'200, 6));
}

TEST_CASE("clock estimates: an answer to what was not asked, or long ago, says nothing") {
  clock_estimates x;
  CHECK_FALSE(x.answered({3}, 1, noon, noon));
  for (uint64_t number = 1; number <= 100; ++number)
    x.asked(number, noon + number);
  CHECK_FALSE(x.answered({3}, 5, noon, noon + 200));
  CHECK_FALSE(x.answered({3}, 100, noon, noon)); // our clock was set back
  CHECK(x.answered({3}, 100, noon, noon + 200));
}
