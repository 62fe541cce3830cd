// How often to write checkpoints, and what is left of the time.
#include "planner/failures/goodput.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <utility>

using namespace ringmaster::training;

namespace {

constexpr double writes_s[] = {0.5, 3, 30, 300, 3000};
constexpr double mttfs_s[] = {600, 3600, 11'135, 86'400, 2e6};

} // namespace

TEST_CASE("checkpoint interval: Young's and Daly's are what their papers' formulas give") {
  CHECK(young_interval(50, 10'000) == 1000);
  // 1000 (1 + 0.05/3 + 0.0025/9) - 50
  CHECK(daly_interval(50, 10'000) == doctest::Approx(966.9444444).epsilon(1e-9));
  CHECK(daly_interval(20'000, 10'000) == 10'000);
  CHECK(daly_interval(30'000, 10'000) == 10'000);
}

TEST_CASE("checkpoint interval: no other keeps more than the best, and Daly's comes closer to it than Young's") {
  for (auto write : writes_s)
    for (auto mttf : mttfs_s) {
      CAPTURE(write);
      CAPTURE(mttf);
      const auto best = best_interval(write, mttf);
      const auto kept = kept_fraction(best, write, 100, mttf);
      for (auto factor : {0.5, 0.9, 0.99, 1.01, 1.1, 2.0})
        CHECK(kept_fraction(factor * best, write, 100, mttf) < kept);
      CHECK(best < mttf);
      CHECK(std::abs(daly_interval(write, mttf) - best) < std::abs(young_interval(write, mttf) - best));
      // The restart costs the same whatever the interval.
      CHECK(kept_fraction(1.01 * best, write, 0, mttf) < kept_fraction(best, write, 0, mttf));
    }
  CHECK(best_interval(0, 3600) == 0);
  CHECK(best_interval(1e-12, 3600) == doctest::Approx(young_interval(1e-12, 3600)));
}

TEST_CASE("checkpoint interval: what is kept is the interval by Daly's expected time of a segment") {
  for (auto write : writes_s)
    for (auto mttf : mttfs_s)
      for (auto interval : {0.1 * mttf, mttf, 3 * mttf}) {
        const double restart = 200;
        const auto expected = mttf * std::exp(restart / mttf) * (std::exp((interval + write) / mttf) - 1);
        CHECK(kept_fraction(interval, write, restart, mttf) == doctest::Approx(interval / expected).epsilon(1e-12));
      }
  CHECK(kept_fraction(600, 30, 300, 1e30) == doctest::Approx(600.0 / 630));
  CHECK(kept_fraction(0, 0, 300, 3600) == doctest::Approx(std::exp(-300.0 / 3600)));
}

TEST_CASE("checkpoint interval: segments that are cut keep what a plain sum over the moments of their ends keeps") {
  constexpr double interval = 900, write = 60;
  for (auto [failures, cuts] : {std::pair{1e-3, 1e-3}, {1e-4, 3e-3}, {2e-3, 1e-5}, {1e-9, 1e-9}}) {
    const auto rate = failures + cuts;
    constexpr int moments = 200'000;
    constexpr auto width = (interval + write) / moments;
    const auto whole = std::exp(-rate * (interval + write));
    double kept = whole * interval, length = whole * (interval + write);
    for (int i = 0; i < moments; ++i) {
      const auto t = (i + 0.5) * width;
      const auto ends_here = rate * std::exp(-rate * t) * width;
      kept += ends_here * cuts / rate * std::min(t, interval);
      length += ends_here * t;
    }
    CHECK(kept_of_segments(interval, write, failures, cuts) == doctest::Approx(kept / length).epsilon(1e-7));
  }
  CHECK(kept_of_segments(interval, write, 1e-3, 1e-15) == doctest::Approx(kept_of_segments(interval, write, 1e-3)));
}
