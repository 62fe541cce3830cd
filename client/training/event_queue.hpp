#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

namespace ringmaster::training {

/// What the trainer has to say, for the program's thread. The trainer, an actor, never waits here: before it ends a
/// step it asks whether there is room, so memory has a limit, and no epoch goes without its checkpoint. The program
/// takes what has gathered at once: small models have a thousand steps a second, and to wake a thread for each costs
/// them a tenth.
class event_queue {
public:
  using clock = std::chrono::steady_clock;

  static constexpr size_t events_max = 1 << 16;
  /// For the program to make room; then the trainer goes on all the same, rather than be lost.
  static constexpr std::chrono::minutes patience{10};
  /// So long steps gather.
  static constexpr std::chrono::milliseconds pause{5};

  enum class kind : uint8_t {
    step,  ///< May wait a little.
    word,  ///< Is to be heard now.
    model, ///< The same, and is large: one at most waits.
  };

  /// `made_room` is called, in the program's thread, when there is room again after it was asked for in vain.
  explicit event_queue(std::function<void()> made_room = [] {}) : made_room_(std::move(made_room)) {}

  void put(std::function<void()> what, kind of) {
    std::lock_guard lock{guard_};
    events_.push_back(std::move(what));
    models_ += of == kind::model ? 1 : 0;
    is_urgent_ = is_urgent_ || of != kind::step;
    if (is_urgent_ || listens_)
      there_.notify_one(); // under the lock: behind the last word the program may destroy this
  }

  /// Whether a step's end has room here, with its model or without.
  bool has_room(bool with_model, clock::time_point now = clock::now()) {
    std::lock_guard lock{guard_};
    if (events_.size() < events_max && !(with_model && models_ > 0)) {
      refused_since_.reset();
      return true;
    }
    refused_since_ = refused_since_.value_or(now);
    if (now - *refused_since_ < patience)
      return false;
    refused_since_ = now; // the next one waits as long
    return true;
  }

  /// All that there is, in its order; after `limit` maybe nothing.
  std::deque<std::function<void()>> take_all(std::chrono::milliseconds limit = std::chrono::milliseconds{100}) {
    std::unique_lock lock{guard_};
    there_.wait_for(lock, std::min(limit, pause), [this] { return is_urgent_; });
    listens_ = true;
    there_.wait_for(lock, limit, [this] { return !events_.empty(); });
    listens_ = is_urgent_ = false;
    models_ = 0;
    const bool tell = std::exchange(refused_since_, std::nullopt).has_value();
    auto result = std::exchange(events_, {});
    lock.unlock();
    if (tell)
      made_room_();
    return result;
  }

private:
  std::function<void()> made_room_;
  std::mutex guard_;
  std::condition_variable there_;
  // Under the guard:
  std::deque<std::function<void()>> events_;
  size_t models_ = 0;
  bool is_urgent_ = false; ///< One of them is.
  bool listens_ = false;   ///< The program waits for any of them.
  std::optional<clock::time_point> refused_since_;
};

} // namespace ringmaster::training
