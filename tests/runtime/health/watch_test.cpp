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

  /// How long it takes until someone is given up.
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

// Two ranks on an overloaded host: when one had caught up, the other one was half of them, and was given up at once.
TEST_CASE("watch: who was late together with most of them is not given up because the others have caught up") {
  four x;
  for (int i = 0; i < 20; ++i)
    CHECK(x.tick(4).suspects.empty());
  for (int i = 0; i < 30; ++i) // 3 s more, in which one alone is late
    CHECK(x.tick(1).suspects.empty());
  CHECK(x.until_suspected(1) < 7s);
}

TEST_CASE("watch: who has caught up is judged as anybody, also while others are excused") {
  four x;
  for (int i = 0; i < 10; ++i)
    x.tick(4);
  for (int i = 0; i < 10; ++i)
    CHECK(x.tick(1).suspects.empty());
  auto second = [&] {
    auto found = x.tick(2).suspects;
    return found.size() == 1 && found.front().first == device_id{2};
  };
  int ticks = 0;
  while (!second())
    REQUIRE(++ticks < 15);
}

TEST_CASE("watch: each has the patience from when it was late, not from when someone else was") {
  four x;
  for (int i = 0; i < 20; ++i)
    x.tick(4);
  for (int i = 0; i < 20; ++i)
    x.tick(1); // the others have caught up, and are late again
  for (int i = 0; i < 20; ++i)
    for (auto& found : x.tick(4).suspects)
      CHECK(found.first == device_id{1});
}

TEST_CASE("watch: an excuse is reported once, and starts again after a moment in which most were in time") {
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
  CHECK(x.of.known({2}, x.now).latest->doing() == "waiting for rank 1's block");
  CHECK(x.of.known({9}, x.now).latest == nullptr);
  CHECK(!x.of.stalled(x.start + 31s));
  CHECK(x.of.stalled(x.start + 32s));
}

namespace {

/// Two processes of two devices each, asked every 100 ms.
struct two_processes {
  watch of{{.interval = 100ms, .late_after = 500ms, .pause_max = 2500ms, .late = 3, .window = 5}, 30s};
  std::vector<device_id> devices{device_id{1}, device_id{2}, device_id{3}, device_id{4}};
  watch::time_point start = watch::time_point{} + 1h, now = start;

  two_processes() {
    for (uint32_t i = 0; i < 4; ++i)
      of.add(devices[i], i / 2);
  }

  /// The answers of a process to this request; `busy_for`: as each of its devices tells.
  void answer(uint32_t process, uint64_t number, watch::duration busy_for = {}) {
    of.on_report(process, now);
    for (auto i = 2 * process; i < 2 * process + 2; ++i) {
      proto::Progress x;
      x.set_number(number);
      x.set_device_id(devices[i].value);
      x.set_busy(busy_for.count() > 0);
      x.set_busy_for_ns(static_cast<uint64_t>(busy_for.count()));
      of.on_answer(x, now);
    }
  }

  /// A tick; the first process answers.
  watch::verdict tick() {
    now += 100ms;
    auto result = of.look(devices, now);
    latest = of.on_request(devices, now);
    now += 1ms;
    answer(0, latest);
    return result;
  }

  uint64_t latest = 0;
};

} // namespace

TEST_CASE("watch: a process that pauses for less than pause-max loses no device, whatever it answers afterwards") {
  for (auto pause : {600ms, 1000ms, 2400ms}) {
    CAPTURE(pause.count());
    two_processes x;
    for (int i = 0; i < 10; ++i) {
      CHECK(x.tick().suspects.empty());
      x.answer(1, x.latest);
    }
    auto first = x.latest + 1;
    for (auto paused_at = x.now; x.now - paused_at < pause;)
      CHECK(x.tick().suspects.empty());
    for (auto number = first; number <= x.latest; ++number)
      x.answer(1, number, pause); // they had the next move when it stopped
    for (int i = 0; i < 10; ++i) {
      CHECK(x.tick().suspects.empty());
      x.answer(1, x.latest);
    }
  }
}

TEST_CASE("watch: a process that is silent for longer loses all its devices at once, and no one else's") {
  two_processes x;
  x.tick();
  x.answer(1, x.latest);
  auto silent_since = x.now;
  watch::verdict found;
  while (found.suspects.empty())
    found = x.tick();
  CHECK(x.now - silent_since > 2500ms);
  CHECK(x.now - silent_since < 2800ms);
  REQUIRE(found.suspects.size() == 2);
  CHECK(found.suspects[0].first == device_id{3});
  CHECK(found.suspects[1].first == device_id{4});
  CHECK(found.suspects[0].second.cause() == proto::Suspicion::PROCESS_SILENT);
  CHECK(text_of(found.suspects[0].second) == "its process has not answered for 2.5 s");
}

TEST_CASE("watch: a device that hangs while its process answers is given up as soon as one without a process") {
  two_processes x;
  watch::verdict found;
  while (found.suspects.empty()) {
    found = x.tick();
    x.of.on_report(1, x.now); // for no one
    REQUIRE(x.now - x.start < 5s);
  }
  CHECK(x.now - x.start < 1s);
  CHECK(found.suspects.size() == 2);
}

TEST_CASE("watch: where the observer was paused itself, no process has been silent") {
  two_processes x;
  x.tick();
  x.answer(1, x.latest);
  x.tick(); // one that the second process has not answered
  x.now += 10s;
  for (int i = 0; i < 20; ++i)
    CHECK(x.tick().suspects.empty());
}

TEST_CASE("watch: where the observer was paused again and again, only the time in which it looked counts") {
  two_processes x;
  x.tick();
  x.answer(1, x.latest);
  auto looked = x.now - x.now;
  while (x.tick().suspects.empty()) {
    looked += 101ms;
    x.now += 400ms; // it was not late by `late_after`
    REQUIRE(looked < 10s);
  }
  CHECK(looked > 2300ms);
  CHECK(looked < 2800ms);
}

TEST_CASE("watch: where the observer pauses for less than the limit after each request, no device was late") {
  for (const bool looks_first : {true, false}) {
    CAPTURE(looks_first);
    watch of{{.interval = 300ms, .late_after = 500ms, .late = 3, .window = 5}, 30s};
    const std::vector<device_id> devices{{1}, {2}, {3}};
    for (auto device : devices)
      of.add(device);
    auto now = watch::time_point{} + 1h;
    uint64_t latest = 0;
    const auto hear = [&] {
      proto::Progress answer;
      answer.set_number(latest);
      answer.set_device_id(3);
      of.on_answer(answer, now);
    };
    for (int i = 0; i < 20; ++i) {
      if (!looks_first)
        hear();
      CHECK(of.look(devices, now).suspects.empty());
      if (looks_first)
        hear();
      latest = of.on_request({device_id{3}}, now);
      of.expect_look(now + 100ms); // sooner than usual
      now += 100ms + 450ms;
    }
  }
}

TEST_CASE("watch: a process is forgotten with the last of its devices") {
  two_processes x;
  x.tick();
  for (int i = 0; i < 10; ++i)
    x.tick(); // the second process is silent
  CHECK(x.of.known({3}, x.now).silent > 900ms);
  x.of.remove({3});
  CHECK(x.of.known({4}, x.now).silent > 900ms);
  x.of.remove({4});
  x.of.add({5}, 1);
  CHECK(x.of.known({5}, x.now).silent == 0ns);
}

TEST_CASE("watch: of 1,024 devices of four processes one that hangs is given up when it would be of eight") {
  const auto until_given_up = [](uint32_t count) {
    watch of{{.interval = 100ms, .late_after = 500ms, .pause_max = 2500ms, .late = 3, .window = 5}, 30s};
    std::vector<device_id> devices;
    for (uint32_t i = 0; i < count; ++i) {
      devices.push_back(device_id{i + 1});
      of.add(devices.back(), i / (count / 4));
    }
    const auto start = watch::time_point{} + 1h;
    for (auto now = start; now - start < 20s;) {
      now += 100ms;
      if (auto found = of.look(devices, now); !found.suspects.empty()) {
        CHECK(found.suspects.size() == 1);
        CHECK(found.suspects[0].first == devices.back());
        return now - start;
      }
      proto::Progress answer;
      answer.set_number(of.on_request(devices, now));
      for (uint32_t process = 0; process < 4; ++process)
        of.on_report(process, now);
      for (size_t i = 0; i + 1 < devices.size(); ++i) {
        answer.set_device_id(devices[i].value);
        of.on_answer(answer, now);
      }
    }
    return watch::duration::max();
  };
  CHECK(until_given_up(8) < 1s);
  CHECK(until_given_up(1024) == until_given_up(8));
}
