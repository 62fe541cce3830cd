#pragma once

#include "messages/ids.hpp"
#include "runtime/invariants/ensure.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <utility>

namespace ringmaster {

/// The latest epoch of each communicator that a stream has heard of. Messages of older ones are stale.
class known_epochs {
public:
  /// Whether a message of this epoch is too old, which is counted.
  bool is_stale(communicator_id communicator, epoch_number epoch) {
    const auto known = latest_.find(communicator);
    if (known == latest_.end() || epoch >= known->second)
      return false;
    ++stale_messages_;
    return true;
  }
  /// Returns whether the epoch is another one than before.
  bool enter(communicator_id communicator, epoch_number epoch) {
    auto& known = latest_[communicator];
    ensure(epoch >= known, "epochs rise");
    return std::exchange(known, epoch) != epoch;
  }
  /// The communicator has ended, and `enter` was called with its last epoch: of very many that have ended, the first
  /// are forgotten.
  void forget(communicator_id communicator) {
    constexpr size_t ended_max = 1024;
    ensure(latest_.count(communicator) != 0, "a communicator that ends was known");
    ended_.push_back(communicator);
    if (ended_.size() > ended_max) {
      latest_.erase(ended_.front());
      ended_.pop_front();
    }
  }
  /// The latest that was heard of; 0: none.
  epoch_number latest(communicator_id communicator) const {
    const auto known = latest_.find(communicator);
    return known == latest_.end() ? epoch_number{} : known->second;
  }
  uint64_t stale_messages() const { return stale_messages_; }

private:
  std::map<communicator_id, epoch_number> latest_;
  std::deque<communicator_id> ended_;
  uint64_t stale_messages_ = 0;
};

} // namespace ringmaster
