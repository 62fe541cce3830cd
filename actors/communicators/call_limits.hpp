#pragma once

#include "runtime/health/deadlines.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/operations/operation.hpp"

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace ringmaster {

/// The limits of calls and operations of a communicator, by number. Pure: the caller passes the time in, and sets the
/// timers.
class call_limits {
public:
  using time_point = deadlines::time_point;

  /// `set_timer` is called with the time at which to call `take_due`.
  explicit call_limits(std::function<void(time_point)> set_timer) : set_timer_(std::move(set_timer)) {}

  /// Returns its number.
  uint64_t add(time_point when) {
    limits_.add(++latest_, when);
    look_at_timer();
    return latest_;
  }
  void remove(uint64_t number) { limits_.remove(number); }

  void add_operation(operation& op, time_point now) {
    ensure(op.limit_number == 0, "an operation has one limit");
    if (op.limit.count() == 0)
      return;
    op.limit_number = add(now + op.limit);
    operations_.emplace(op.limit_number, op.sequence);
  }
  void remove_operation(const operation& op) {
    if (op.limit_number == 0)
      return;
    operations_.erase(op.limit_number);
    limits_.remove(op.limit_number);
  }
  /// The operation whose limit has passed. None: the limit is not of an operation.
  std::optional<sequence_number> take_operation(uint64_t number) {
    auto found = operations_.extract(number);
    return found ? std::optional{found.mapped()} : std::nullopt;
  }

  std::vector<uint64_t> take_due(time_point now) {
    auto result = limits_.take_due(now);
    look_at_timer();
    return result;
  }

private:
  void look_at_timer() {
    if (const auto when = limits_.timer())
      set_timer_(*when);
  }

  std::function<void(time_point)> set_timer_;
  deadlines limits_;
  uint64_t latest_ = 0;
  std::map<uint64_t, sequence_number> operations_; ///< By the number of their limit.
};

} // namespace ringmaster
