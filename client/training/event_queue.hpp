#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace ringmaster::training {

/// What the trainer's thread has to say, for the program's.
class event_queue {
public:
  void put(std::function<void()> x) {
    {
      std::scoped_lock lock{guard_};
      events_.push_back(std::move(x));
    }
    there_.notify_one();
  }
  /// The next one, or null after a tenth of a second.
  std::function<void()> take() {
    std::unique_lock lock{guard_};
    if (!there_.wait_for(lock, std::chrono::milliseconds{100}, [this] { return !events_.empty(); }))
      return nullptr;
    auto result = std::move(events_.front());
    events_.pop_front();
    return result;
  }

private:
  std::mutex guard_;
  std::condition_variable there_;
  std::deque<std::function<void()>> events_;
};

} // namespace ringmaster::training
