#include "runtime/health/slow_devices.hpp"

#include <doctest/doctest.h>

#include <map>
#include <random>

using namespace ringmaster;
using namespace std::chrono_literals;

namespace {

/// Devices that are asked every 100 ms, and what each does between two answers.
struct workplace {
  struct pace {
    double share = 0.1;    ///< Of the time in which it owes the next move.
    uint64_t steps = 10;   ///< Per tick.
    uint64_t bytes = 1000; ///< The same.
  };

  explicit workplace(std::vector<pace> its_paces) : paces(std::move(its_paces)) {
    for (uint64_t i = 0; i < paces.size(); ++i)
      devices.push_back(device_id{i + 1});
  }

  /// For so long; returns what has changed.
  std::vector<slow_devices::change> work(slow_devices::duration time) {
    std::vector<slow_devices::change> result;
    for (const auto until = now + time; now < until;) {
      now += 100ms;
      for (size_t i = 0; i < devices.size(); ++i) {
        auto& so_far = done[i];
        so_far.set_own_ns(so_far.own_ns() + static_cast<uint64_t>(paces[i].share * 1e8));
        so_far.set_steps(so_far.steps() + paces[i].steps);
        so_far.set_bytes(so_far.bytes() + paces[i].bytes);
        of.heard(devices[i], so_far, now);
      }
      for (auto& x : of.look(devices, now)) {
        changed_at = now;
        result.push_back(std::move(x));
      }
    }
    return result;
  }

  std::vector<pace> paces;
  slow_devices of;
  std::vector<device_id> devices;
  std::map<size_t, proto::DeviceWork> done;
  slow_devices::time_point now{1h}, changed_at;
};

/// The first is this many times as slow as the others.
std::vector<workplace::pace> slower(double factor, size_t devices = 8) {
  std::vector<workplace::pace> result(devices);
  result[0].share = 0.9;
  for (size_t i = 1; i < devices; ++i)
    result[i].share = 0.9 / factor;
  return result;
}

} // namespace

TEST_CASE("slow devices: one that is ten times slower is named within 5 s, with what was seen") {
  for (size_t count : {2, 3, 64}) {
    CAPTURE(count);
    workplace x{slower(10, count)};
    const auto begun = x.now;
    const auto found = x.work(5s);
    REQUIRE(found.size() == 1);
    CHECK(x.changed_at - begun < 5s);
    CHECK(found[0].device == device_id{1});
    CHECK(found[0].is_slow);
    CHECK(found[0].how.factor() == doctest::Approx(10).epsilon(0.01));
    REQUIRE(x.of.slowness({1}) != nullptr);
    CHECK(x.of.slowness({2}) == nullptr);
    CHECK(
      text_of(*x.of.slowness({1}))
      == "10 times slower than the others: it owed the next move for 2.7 s of 3.0 s, they for 0.27 s in the median");
  }
}

TEST_CASE("slow devices: one that turns slow after an hour is named within 5 s, too") {
  workplace x{slower(1)};
  CHECK(x.work(1h).empty());
  x.paces = slower(10);
  CHECK(x.work(5s).size() == 1);
}

TEST_CASE("slow devices: one that is three times slower is not named, whatever the noise") {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random{seed};
    workplace x{slower(3)};
    for (int i = 0; i < 100; ++i) {
      for (auto& pace : x.paces)
        pace.share *= 1 + 0.2 * (static_cast<double>(random() % 201) / 100 - 1);
      CHECK(x.work(100ms).empty());
      x.paces = slower(3);
    }
  }
}

TEST_CASE("slow devices: who has more to do is not slow") {
  workplace root{slower(10)};
  root.paces[0].steps *= 8; // a root that receives from all others
  CHECK(root.work(10s).empty());
  workplace uneven{slower(10)};
  uneven.paces[0].bytes *= 8; // in the same number of steps
  CHECK(uneven.work(10s).empty());
}

TEST_CASE("slow devices: who is slow but keeps no one waiting is not named") {
  auto paces = slower(10);
  for (auto& pace : paces)
    pace.share /= 10;
  CHECK(workplace{paces}.work(10s).empty());
}

TEST_CASE("slow devices: it is said once, and once when it is over; a little better is not over") {
  workplace x{slower(10)};
  CHECK(x.work(60s).size() == 1);
  x.paces = slower(4.5);
  CHECK(x.work(10s).empty());
  x.paces = slower(2);
  const auto found = x.work(5s);
  REQUIRE(found.size() == 1);
  CHECK_FALSE(found[0].is_slow);
  CHECK(x.of.slowness({1}) == nullptr);
}

TEST_CASE("slow devices: what was seen before a time without operations counts no more") {
  workplace x{slower(10)};
  CHECK(x.work(2800ms).empty());
  x.now += 10min;
  CHECK(x.work(2800ms).empty());
  CHECK(x.work(500ms).size() == 1);
}

TEST_CASE("slow devices: of peers that have nothing to do the factor is the largest that a report has") {
  auto paces = slower(10);
  for (size_t i = 1; i < paces.size(); ++i)
    paces[i] = {0, 10, 0};
  workplace x{paces};
  REQUIRE(x.work(5s).size() == 1);
  CHECK(x.of.slowness({1})->factor() == slow_devices::factor_max);
  CHECK(text_of(*x.of.slowness({1})).starts_with("over 999 times slower"));
}
