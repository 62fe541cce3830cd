#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace ringmaster {

/// Limits of things that are waited for, of which most end before. One timer serves them all: an actor's delayed
/// message cannot be taken back, and one for each would pile up.
class deadlines {
public:
  using time_point = std::chrono::steady_clock::time_point;

  void add(uint64_t number, time_point when) {
    when_[number] = when;
    order_.emplace(when, number);
  }

  void remove(uint64_t number) {
    if (auto i = when_.extract(number))
      order_.erase({i.mapped(), number});
  }

  /// Those that have passed, earliest first. They are forgotten.
  std::vector<uint64_t> take_due(time_point now) {
    std::vector<uint64_t> result;
    while (!order_.empty() && order_.begin()->first <= now) {
      result.push_back(order_.begin()->second);
      when_.erase(result.back());
      order_.erase(order_.begin());
    }
    while (!timers_.empty() && *timers_.begin() <= now)
      timers_.erase(timers_.begin());
    return result;
  }

  /// When to set a timer, which then is taken for set; none where an earlier one will do.
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
