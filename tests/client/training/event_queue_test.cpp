#include "client/training/event_queue.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

using namespace ringmaster::training;

TEST_CASE("of models one at most waits for the program, and all events come in their order") {
  constexpr int events = 600;
  event_queue queue;
  std::atomic<int> models_put{0};
  std::thread trainer{[&] {
    for (int i = 0; i < events; ++i) {
      const bool is_model = i % 3 == 0;
      queue.put([] {}, is_model);
      models_put += is_model ? 1 : 0;
    }
  }};
  int models_taken = 0, most_ahead = 0;
  for (int i = 0; i < events;) {
    auto next = queue.take();
    if (!next)
      continue;
    models_taken += i++ % 3 == 0 ? 1 : 0;
    most_ahead = std::max(most_ahead, models_put.load() - models_taken);
  }
  trainer.join();
  CHECK(models_put == events / 3);
  CHECK(most_ahead <= 1);
}

TEST_CASE("what the trainer says comes in its order, and nothing comes from an empty queue") {
  event_queue queue;
  std::vector<int> said;
  CHECK(queue.take(std::chrono::milliseconds{0}) == nullptr);
  for (int i = 0; i < 5; ++i)
    queue.put([&said, i] { said.push_back(i); }, i == 3);
  while (auto next = queue.take(std::chrono::milliseconds{0}))
    next();
  CHECK(said == std::vector<int>{0, 1, 2, 3, 4});
}
