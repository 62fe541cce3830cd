#pragma once

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

namespace ringmaster::training {

/// Events from the trainer to the program's thread. The trainer is an actor and never blocks here: before it commits a
/// step it asks whether there is room, so memory has a limit, and every epoch gets its checkpoint. The program takes
/// all events at once: small models have a thousand steps a second, and waking a thread for each costs a tenth of the
/// time.
class event_queue {
public:
  using clock = std::chrono::steady_clock;

  static constexpr size_t events_max = 1 << 16;
  /// For the program to make room. After that the trainer continues all the same, so that it is not taken for lost.
  static constexpr std::chrono::minutes patience{10};
  /// Steps are collected for this long.
  static constexpr std::chrono::milliseconds pause{5};

  enum class kind : uint8_t {
    step,  ///< Can wait a little.
    word,  ///< Is handled at once.
    model, ///< The same, and is large: the queue holds one at most.
  };

  /// `made_room` is called in the program's thread when there is room again after `has_room` returned false.
  explicit event_queue(std::function<void()> made_room = [] {}) : made_room_(std::move(made_room)) {}

  void put(std::function<void()> what, kind of) {
    ensure(static_cast<bool>(what), "an event does something");
    std::lock_guard lock{guard_};
    events_.push_back(std::move(what));
    models_ += of == kind::model ? 1 : 0;
    is_urgent_ = is_urgent_ || of != kind::step;
    if (is_urgent_ || listens_)
      available_.notify_one(); // under the lock: after the last event the program may destroy this
  }

  /// Whether there is room for a step's report, with its model or without.
  bool has_room(bool with_model, clock::time_point now = clock::now()) {
    std::lock_guard lock{guard_};
    if (events_.size() < events_max && !(with_model && models_ > 0)) {
      refused_since_.reset();
      return true;
    }
    refused_since_ = refused_since_.value_or(now);
    if (now - *refused_since_ < patience)
      return false;
    refused_since_ = now; // the next report waits as long
    return true;
  }

  /// All events, in their order; none if none arrives within `limit`.
  std::deque<std::function<void()>> take_all(std::chrono::milliseconds limit = std::chrono::milliseconds{100}) {
    std::unique_lock lock{guard_};
    available_.wait_for(lock, std::min(limit, pause), [this] { return is_urgent_; });
    listens_ = true;
    available_.wait_for(lock, limit, [this] { return !events_.empty(); });
    listens_ = is_urgent_ = false;
    models_ = 0;
    const bool room_wanted = std::exchange(refused_since_, std::nullopt).has_value();
    auto result = std::exchange(events_, {});
    lock.unlock();
    if (room_wanted)
      made_room_();
    return result;
  }

private:
  std::function<void()> made_room_;
  std::mutex guard_;
  std::condition_variable available_;
  // Under the guard:
  std::deque<std::function<void()>> events_;
  size_t models_ = 0;
  bool is_urgent_ = false; ///< One of the events is.
  bool listens_ = false;   ///< The program waits for any event.
  std::optional<clock::time_point> refused_since_;
};

} // namespace ringmaster::training
