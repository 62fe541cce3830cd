#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace ringmaster::training {

/// What the trainer's thread has to say, for the program's. It waits where the program is behind by a whole model, or
/// by very many events: memory has a limit, and no epoch goes without its checkpoint. So it needs a thread of its own.
class event_queue {
public:
  static constexpr size_t events_max = 1 << 16;
  /// For the program to take one; then the trainer goes on all the same, rather than be lost.
  static constexpr std::chrono::minutes patience{10};

  /// `is_large`: it has a model. One at most waits.
  void put(std::function<void()> x, bool is_large = false) {
    {
      std::unique_lock lock{guard_};
      room_.wait_for(lock, patience, [&] { return events_.size() < events_max && !(is_large && large_waits_); });
      large_waits_ = large_waits_ || is_large;
      events_.push_back({std::move(x), is_large});
    }
    there_.notify_one();
  }
  /// The next one, or null after `limit`.
  std::function<void()> take(std::chrono::milliseconds limit = std::chrono::milliseconds{100}) {
    std::function<void()> result;
    {
      std::unique_lock lock{guard_};
      if (!there_.wait_for(lock, limit, [this] { return !events_.empty(); }))
        return nullptr;
      result = std::move(events_.front().what);
      large_waits_ = large_waits_ && !events_.front().is_large;
      events_.pop_front();
    }
    room_.notify_one();
    return result;
  }

private:
  struct event {
    std::function<void()> what;
    bool is_large = false;
  };

  std::mutex guard_;
  std::condition_variable there_, room_;
  std::deque<event> events_;
  bool large_waits_ = false;
};

} // namespace ringmaster::training
