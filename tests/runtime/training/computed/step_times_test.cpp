#include "runtime/training/computed/step_times.hpp"

#include <doctest/doctest.h>

using namespace ringmaster::training;

TEST_CASE("step times: the median is the lower one of two") {
  CHECK(median_of({4, 1, 3, 2}) == 2);
  CHECK(median_of({3, 1, 2}) == 2);
  CHECK(median_of({}) == 0);
}

TEST_CASE("step times: what steps took around one is theirs, whatever it took itself, also at the ends of a run") {
  std::vector<double> seconds(40, 1.);
  seconds.resize(100, 2.);
  seconds[0] = seconds[60] = seconds[99] = 7;
  CHECK(median_around(seconds, 0) == 1);
  CHECK(median_around(seconds, 39) == 1);
  CHECK(median_around(seconds, 40) == 2);
  CHECK(median_around(seconds, 60) == 2);
  CHECK(median_around(seconds, 99) == 2);
  CHECK(median_around(std::span{seconds}.first(1), 0) == 7);
}
