#include "runtime/health/suspicion.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <random>

using namespace ringmaster;
using namespace std::chrono_literals;

namespace {

/// An observer that asks every 100 ms, and a device that answers as configured.
struct observation {
  using duration = suspicion::duration;

  /// What the device does with request `number`: it answers after this long, or never.
  using answers_after = std::function<std::optional<duration>(uint64_t number)>;

  /// Lets `ticks` intervals pass; answers come in between, each at its time.
  suspicion::verdict run(int ticks, const answers_after& device, duration busy_for = 0ns) {
    suspicion::verdict last;
    for (int i = 0; i < ticks; ++i) {
      last = tick();
      if (auto after = device(number))
        answers.emplace(now + *after, number);
      auto next = now + 100ms;
      for (; !answers.empty() && answers.begin()->first <= next; answers.erase(answers.begin()))
        subject.on_answer(answers.begin()->second, busy_for, answers.begin()->first);
      now = next;
    }
    return last;
  }

  suspicion::verdict tick() {
    auto result = subject.evaluate(now);
    ever_suspected |= result.suspected;
    subject.on_request(++number, now);
    return result;
  }

  void pause(duration length) {
    now += length;
    subject.excuse(length, now);
  }

  suspicion subject{suspicion::options{}};
  suspicion::time_point now{1h};
  uint64_t number = 0;
  std::multimap<suspicion::time_point, uint64_t> answers;
  bool ever_suspected = false;
};

std::optional<suspicion::duration> promptly(uint64_t) {
  return 1ms;
}
std::optional<suspicion::duration> never(uint64_t) {
  return std::nullopt;
}

} // namespace

TEST_CASE("suspicion: a device that answers in time is not suspected") {
  observation x;
  auto verdict = x.run(1000, promptly);
  CHECK(!x.ever_suspected);
  CHECK(verdict.reason == "");
}

TEST_CASE("suspicion: a hang is suspected as soon as three requests are late, and the reason says so") {
  observation x;
  x.run(10, promptly);
  // Requests 11, 12 and 13 stay open; 13 goes out after 200 ms and is late when more than 500 ms have passed since.
  x.run(8, never);
  CHECK(!x.ever_suspected);
  auto verdict = x.run(1, never);
  CHECK(verdict.suspected);
  CHECK(verdict.reason == "3 of its last 5 answers were late (no answer to request 13 for 0.6 s)");
}

TEST_CASE("suspicion: a device that never answered at all is suspected, too") {
  observation x;
  auto verdict = x.run(9, never);
  CHECK(verdict.suspected);
  CHECK(verdict.reason == "3 of its last 3 answers were late (no answer to request 3 for 0.6 s)");
}

TEST_CASE("suspicion: a request that is late counts once, and a very late answer does not make it good") {
  observation x;
  x.run(3, [](uint64_t number) { return number == 1 ? std::optional<suspicion::duration>{700ms} : 1ms; });
  auto at_800ms = x.run(6, promptly);
  CHECK(at_800ms.reason == "1 of its last 5 answers was late (no answer to request 1 for 0.8 s)");
  auto later = x.run(2, promptly);
  CHECK(later.reason == "1 of its last 5 answers was late (no answer to request 1 for 1.0 s)");
}

TEST_CASE("suspicion: an answer just too late between two ticks is late") {
  observation x;
  x.run(7, [](uint64_t) { return 501ms; });
  auto verdict = x.run(3, [](uint64_t) { return 501ms; });
  CHECK(verdict.suspected);
  CHECK(verdict.reason.find("took 0.5 s") != std::string::npos);
}

TEST_CASE("suspicion: an answer after exactly the limit is in time") {
  observation x;
  x.run(100, [](uint64_t) { return 500ms; });
  CHECK(!x.ever_suspected);
}

TEST_CASE("suspicion: a device that owes its next move for too long is suspected though it answers at once") {
  observation x;
  x.run(10, promptly, 500ms);
  CHECK(!x.ever_suspected);
  auto verdict = x.run(4, promptly, 1200ms);
  CHECK(verdict.suspected);
  CHECK(verdict.reason
        == "3 of its last 5 answers were late (by its answer to request 13 it had owed the next move for 1.2 s)");
}

TEST_CASE("suspicion: two late answers of five are no ground") {
  observation x;
  x.run(1000, [](uint64_t number) -> std::optional<suspicion::duration> {
    return number % 5 < 2 ? std::nullopt : std::optional<suspicion::duration>{1ms};
  });
  CHECK(!x.ever_suspected);
}

TEST_CASE("suspicion: jitter below the limit never suspects") {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random{seed};
    observation x;
    x.run(500, [&](uint64_t) { return std::chrono::microseconds{random() % 500'000}; });
    CHECK(!x.ever_suspected);
  }
}

TEST_CASE("suspicion: a device that recovers is cleared as good answers fill the window") {
  observation x;
  CHECK(x.run(12, never).suspected);
  // What was open keeps turning late for another 500 ms while good answers come in.
  auto verdict = x.run(30, promptly);
  CHECK(!verdict.suspected);
  CHECK(verdict.reason == "");
}

TEST_CASE("suspicion: an observer that was paused blames no one") {
  SUBCASE("the tick comes first, the answers after it") {
    observation x;
    x.run(10, promptly);
    x.tick();
    x.pause(5s);
    CHECK(x.tick().reason == "");
    x.subject.on_answer(11, 0ns, x.now);
    x.subject.on_answer(12, 0ns, x.now + 1ms);
    x.now += 100ms;
    CHECK(x.run(10, promptly).reason == "");
  }
  SUBCASE("the answers come first") {
    observation x;
    x.run(10, promptly);
    x.tick();
    x.pause(5s);
    x.subject.on_answer(11, 5s, x.now); // the device's host was paused as well
    CHECK(x.run(1, promptly).reason == "");
  }
  SUBCASE("again and again") {
    observation x;
    for (int i = 0; i < 20; ++i) {
      x.tick();
      x.now += 100ms;
      x.pause(501ms);
    }
    CHECK(!x.ever_suspected);
  }
}

TEST_CASE("suspicion: a standstill of the observer only delays the suspicion of a device that hangs") {
  observation x;
  x.run(4, never);
  x.pause(5s);
  auto verdict = x.run(6, never);
  CHECK(verdict.reason == "");
  verdict = x.run(1, never);
  CHECK(verdict.suspected); // the four old ones, counted from the end of the standstill
}
