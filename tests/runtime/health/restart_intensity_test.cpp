#include "runtime/health/restart_intensity.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

using namespace ringmaster;
using namespace std::chrono_literals;

namespace {

using time_point = restart_intensity::time_point;

} // namespace

TEST_CASE("restart intensity: allows the configured number of restarts in a period, and not one more") {
  restart_intensity subject{{.restarts_max = 3, .period = 10s}};
  time_point start{1h};
  CHECK(subject.allow(start));
  CHECK(subject.allow(start + 1s));
  CHECK(subject.allow(start + 2s));
  CHECK(subject.reason() == "3 restarts within 10.0 s, 3 are allowed");
  CHECK(!subject.allow(start + 3s));
  CHECK(subject.reason() == "4 restarts within 10.0 s, 3 are allowed");
}

TEST_CASE("restart intensity: a restart counts for exactly one period") {
  restart_intensity at_the_end{{.restarts_max = 1, .period = 10s}};
  CHECK(at_the_end.allow(time_point{0s}));
  CHECK(!at_the_end.allow(time_point{10s}));
  restart_intensity after_it{{.restarts_max = 1, .period = 10s}};
  CHECK(after_it.allow(time_point{0s}));
  CHECK(after_it.allow(time_point{10s + 1ns}));
}

TEST_CASE("restart intensity: none allowed means none") {
  restart_intensity subject{{.restarts_max = 0, .period = 10s}};
  CHECK(!subject.allow(time_point{0s}));
  CHECK(subject.reason() == "1 restart within 10.0 s, 0 are allowed");
}

TEST_CASE("restart intensity: agrees with a plain count over random times") {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random{seed};
    restart_intensity subject{{.restarts_max = 4, .period = 1s}};
    std::vector<time_point> all;
    time_point now{1h};
    for (int i = 0; i < 200; ++i) {
      now += std::chrono::milliseconds{random() % 400};
      all.push_back(now);
      auto recent = std::count_if(all.begin(), all.end(), [&](time_point x) { return now - x <= 1s; });
      CHECK(subject.allow(now) == (recent <= 4));
    }
  }
}

TEST_CASE("restart delay: half a second, then twice as long each time in a row, and no longer than is said") {
  std::vector<std::chrono::milliseconds> all;
  for (uint32_t times = 1; times <= 7; ++times)
    all.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(restart_delay(times, 10s)));
  CHECK(all == std::vector<std::chrono::milliseconds>{500ms, 1s, 2s, 4s, 8s, 10s, 10s});
  CHECK(restart_delay(1, 100ms) == 100ms);
  CHECK(restart_delay(UINT32_MAX, 10s) == 10s);
}
