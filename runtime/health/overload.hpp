#pragma once

#include "messages/ids.hpp"

#include <chrono>
#include <optional>
#include <set>

namespace ringmaster {

/// Devices hang one by one. Where more than half of them answer late at once, the hosts have too much to do, or their
/// network: to give them up would leave nobody. Those who are late then get ten times as long, also when others have
/// caught up meanwhile: on such a host somebody is the last. Pure: the caller passes the time in.
class overload {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using duration = std::chrono::nanoseconds;

  /// `late_after`: when one answer is late.
  explicit overload(duration late_after) : patience_(10 * late_after) {}

  struct verdict {
    std::set<device_id> excused; ///< Of the suspects: not to be believed, for now.
    bool began = false;          ///< Since this look.
  };
  /// Judges the suspects among so many who are watched; to be called at each look.
  verdict look(const std::set<device_id>& suspects, size_t watched, time_point now) {
    std::erase_if(late_, [&](device_id device) { return suspects.count(device) == 0; });
    if (2 * suspects.size() > watched)
      late_ = suspects;
    if (late_.empty()) {
      since_.reset();
      return {};
    }
    bool began = !since_;
    if (began)
      since_ = now;
    return {now - *since_ < patience_ ? late_ : std::set<device_id>{}, began};
  }

  duration patience() const { return patience_; }

private:
  duration patience_;
  std::set<device_id> late_; ///< Since most were, without a pause.
  std::optional<time_point> since_;
};

} // namespace ringmaster
