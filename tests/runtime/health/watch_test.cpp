#include "runtime/health/watch.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace std::chrono_literals;

namespace {

/// Four devices that are asked every 100 ms; late after 500 ms, three of five.
struct four {
  watch of{{.interval = 100ms, .late_after = 500ms, .late = 3, .window = 5}, 30s};
  std::vector<device_id> devices{{1}, {2}, {3}, {4}};
  watch::time_point start = watch::time_point{} + 1h, now = start;

  four() {
    for (auto device : devices)
      of.add(device);
  }

  /// A tick, at which the first `silent` do not answer.
  watch::verdict tick(size_t silent) {
    now += 100ms;
    auto result = of.look(devices, now);
    proto::Progress answer;
    answer.set_number(of.on_request(devices, now));
    for (size_t i = silent; i < devices.size(); ++i) {
      answer.set_device_id(devices[i].value);
      of.on_answer(answer, now + 1ms);
    }
    return result;
  }

  /// How long it takes until somebody is given up.
  watch::duration until_suspected(size_t silent) {
    while (tick(silent).suspects.empty())
      REQUIRE(now - start < 20s);
    return now - start;
  }
};

} // namespace

// Guards the border of the excuse: half is not most. With 2 of 4 excused it takes 5.9 s.
TEST_CASE("watch: half of the devices may hang, and are given up in time") {
  for (size_t silent : {1, 2}) {
    CAPTURE(silent);
    CHECK(four{}.until_suspected(silent) < 1s);
  }
}

TEST_CASE("watch: where more than half are late at once it is the hosts' load, and they have ten times as long") {
  for (size_t silent : {3, 4}) {
    CAPTURE(silent);
    four x;
    auto took = x.until_suspected(silent);
    CHECK(took > 5s);
    CHECK(took < 6s);
  }
}

TEST_CASE("watch: an excuse is told once, and begins anew behind a moment in which most were in time") {
  four x;
  auto told = [&](size_t silent, int ticks) {
    int result = 0;
    for (int i = 0; i < ticks; ++i)
      result += !x.tick(silent).overload.empty();
    return result;
  };
  CHECK(told(4, 20) == 1);
  CHECK(told(0, 10) == 0);
  CHECK(told(4, 20) == 1);
  CHECK(x.tick(4).suspects.empty()); // 2 s and not 5
}

TEST_CASE("watch: a new word of anybody is progress, the same word is none") {
  four x;
  proto::Progress answer;
  answer.set_device_id(2);
  answer.set_doing("waiting for rank 1's block");
  x.of.note_progress(x.start);
  x.of.on_answer(answer, x.start + 1s);
  CHECK(x.of.last_progress() == x.start + 1s);
  x.of.on_answer(answer, x.start + 2s);
  CHECK(x.of.last_progress() == x.start + 1s);
  CHECK(x.of.doing({2}) == "waiting for rank 1's block");
  CHECK(x.of.doing({9}).empty());
  CHECK(!x.of.stalled(x.start + 31s));
  CHECK(x.of.stalled(x.start + 32s));
}
