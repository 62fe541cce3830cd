#pragma once

#include "messages/ids.hpp"
#include "runtime/invariants/ensure.hpp"

#include <chrono>
#include <map>
#include <set>

namespace ringmaster {

/// Devices hang one by one. If more than half of them answer late at once, the hosts or their network are overloaded:
/// to give them up would leave none. Those that are late then get ten times as long, also when others have caught up
/// meanwhile: on such a host one is always the last. Pure: the caller passes the time in.
class overload {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using duration = std::chrono::nanoseconds;

  /// `late_after`: when one answer is late.
  explicit overload(duration late_after) : patience_(10 * late_after) {}

  struct verdict {
    std::set<device_id> excused; ///< Suspects that are not given up for now.
    bool began = false;          ///< The excuse starts with this look.
  };
  /// Judges the suspects among the watched devices; call it at each look.
  verdict look(const std::set<device_id>& suspects, size_t watched, time_point now) {
    ensure(suspects.size() <= watched, "only devices that are watched are suspected");
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
    ensure(result.excused.size() <= suspects.size(), "only suspects are excused");
    return result;
  }

  duration patience() const { return patience_; }

private:
  duration patience_;
  std::map<device_id, time_point> late_; ///< Since when they have been late, together with most, without a pause.
};

} // namespace ringmaster
