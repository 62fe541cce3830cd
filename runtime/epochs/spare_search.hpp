#pragma once

#include "messages/ids.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

namespace ringmaster {

/// Ranks that wait for a spare device. One spare is asked for at a time.
class spare_search {
public:
  bool any_waits() const { return !waiting_.empty(); }
  const std::deque<device_id>& waiting() const { return waiting_; }
  /// The lost device that a spare was asked for; 0: none.
  device_id asked_for() const { return asked_for_; }

  void add(device_id lost) {
    ensure(std::find(waiting_.begin(), waiting_.end(), lost) == waiting_.end(), "a rank waits for one spare");
    waiting_.push_back(lost);
  }
  void remove(device_id lost) { std::erase(waiting_, lost); }
  void clear() { waiting_.clear(); }

  /// The rank that a spare is to be asked for now. None: the answer for it is still due. `latest`: the latest operation
  /// that was called; the request names the inputs of operations up to it.
  std::optional<device_id> ask(sequence_number latest) {
    ensure(!waiting_.empty(), "a spare is asked for if a rank waits for one");
    const auto first = waiting_.front();
    if (asked_for_ == first)
      return std::nullopt;
    ensure(asked_for_ == device_id{}, "one spare is asked for at a time");
    asked_for_ = first;
    asked_at_ = latest;
    return first;
  }
  /// The request is answered. Returns which device it was for.
  device_id answered() { return std::exchange(asked_for_, {}); }
  /// The operation was called before the spare was asked for.
  bool knew_of(sequence_number operation) const { return operation <= asked_at_; }

private:
  std::deque<device_id> waiting_; ///< Lost devices.
  device_id asked_for_;
  sequence_number asked_at_;
};

} // namespace ringmaster
