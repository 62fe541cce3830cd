#pragma once

#include "messages/ids.hpp"

#include <chrono>
#include <map>
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
    std::erase_if(late_, [&](auto& x) { return suspects.count(x.first) == 0; });
    verdict result;
    if (2 * suspects.size() > watched) {
      result.began = late_.empty();
      for (auto device : suspects)
        late_.emplace(device, now);
    }
    for (auto& [device, since] : late_)
      if (now - since < patience_)
        result.excused.insert(device);
    return result;
  }

  duration patience() const { return patience_; }

private:
  duration patience_;
  std::map<device_id, time_point> late_; ///< Since when they have been late, together with most, without a pause.
};

} // namespace ringmaster
