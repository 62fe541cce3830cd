#pragma once

#include "runtime/invariants/ensure.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace ringmaster {

/// Limits of calls, most of which are answered before. One timer serves all of them: an actor's delayed message cannot
/// be cancelled, and one for each call would pile up.
class deadlines {
public:
  using time_point = std::chrono::steady_clock::time_point;

  void add(uint64_t number, time_point when) {
    const bool is_new = when_.emplace(number, when).second;
    ensure(is_new, "a call has one limit");
    order_.emplace(when, number);
    ensure(when_.size() == order_.size(), "each limit is in the order");
  }

  void remove(uint64_t number) {
    if (auto i = when_.extract(number)) {
      const auto erased = order_.erase({i.mapped(), number});
      ensure(erased == 1, "a limit is in the order");
    }
  }

  /// Takes those that have passed, earliest first.
  std::vector<uint64_t> take_due(time_point now) {
    std::vector<uint64_t> result;
    while (!order_.empty() && order_.begin()->first <= now) {
      result.push_back(order_.begin()->second);
      when_.erase(result.back());
      order_.erase(order_.begin());
    }
    while (!timers_.empty() && *timers_.begin() <= now)
      timers_.erase(timers_.begin());
    ensure(when_.size() == order_.size(), "a limit that has passed is forgotten");
    return result;
  }

  /// When to set a timer: the caller must set it. None: an earlier timer is set.
  std::optional<time_point> timer() {
    if (order_.empty() || (!timers_.empty() && *timers_.begin() <= order_.begin()->first))
      return std::nullopt;
    return *timers_.insert(order_.begin()->first).first;
  }

private:
  std::map<uint64_t, time_point> when_;
  std::set<std::pair<time_point, uint64_t>> order_;
  std::set<time_point> timers_;
};

} // namespace ringmaster
