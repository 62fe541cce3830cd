#include "client/training/event_queue.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

using ringmaster::training::event_queue;
using kind = event_queue::kind;
using namespace std::chrono_literals;

TEST_CASE("event_queue: has room for one model, and reports room after a refusal") {
  int told = 0;
  event_queue queue{[&] { ++told; }};
  CHECK(queue.has_room(true));
  queue.put([] {}, kind::model);
  CHECK(queue.has_room(false));
  CHECK(queue.take_all(0ms).size() == 1);
  CHECK(told == 0); // nothing was refused before
  queue.put([] {}, kind::model);
  CHECK_FALSE(queue.has_room(true));
  CHECK(queue.take_all(0ms).size() == 1);
  CHECK(told == 1);
  CHECK(queue.has_room(true));
}

TEST_CASE("event_queue: has a limit of events, and of patience with a program that takes none") {
  event_queue queue;
  for (size_t i = 0; i < event_queue::events_max; ++i)
    queue.put([] {}, kind::step);
  const auto now = event_queue::clock::now();
  CHECK_FALSE(queue.has_room(false, now));
  CHECK_FALSE(queue.has_room(false, now + event_queue::patience - 1s));
  CHECK(queue.has_room(false, now + event_queue::patience));
  CHECK_FALSE(queue.has_room(false, now + event_queue::patience)); // for one
  CHECK(queue.has_room(false, now + 2 * event_queue::patience));
  CHECK(queue.take_all(0ms).size() == event_queue::events_max);
  CHECK(queue.has_room(false, now));
}

TEST_CASE("event_queue: keeps the order of events, and gives nothing when empty") {
  event_queue queue;
  std::vector<int> said;
  CHECK(queue.take_all(0ms).empty());
  for (int i = 0; i < 5; ++i)
    queue.put([&said, i] { said.push_back(i); }, i == 3 ? kind::word : kind::step);
  for (auto& each : queue.take_all(0ms))
    each();
  CHECK(said == std::vector<int>{0, 1, 2, 3, 4});
}

TEST_CASE("event_queue: gets all events of another thread, and misses no wake-up") {
  constexpr int events = 3000;
  std::atomic<int> room{0};
  event_queue queue{[&] { ++room; }};
  std::thread trainer{[&] {
    for (int i = 0; i < events; ++i) {
      while (!queue.has_room(i % 3 == 0))
        for (auto seen = room.load(); room == seen && !queue.has_room(true);)
          std::this_thread::yield();
      queue.put([] {}, i % 3 == 0 ? kind::model : kind::step);
    }
  }};
  int taken = 0;
  while (taken < events)
    taken += static_cast<int>(queue.take_all(30s).size());
  trainer.join();
  CHECK(taken == events);
}
