#pragma once

#include <chrono>

namespace ringmaster {

/// Whether a lease can be relied on, from the answers to its renewals. The other side counts from the moment at which it
/// handles a renewal, so this side counts from the moment before it sends one: it never believes for longer.
///
///   held --no answer for the lease's length--> in doubt --an answer--> held
///     |                                            |
///     +------- the other side has no such lease ---+--> lost, for good
///
/// Not thread-safe. Times are those of a clock that also runs while the machine sleeps.
class lease_clock {
public:
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<std::chrono::steady_clock, duration>;

  lease_clock(time_point asked, duration length) : until_(asked + length) {}

  /// A renewal that was sent at `asked` had this answer.
  void renewed(time_point asked, duration length) {
    if (!lost_ && asked + length > until_)
      until_ = asked + length;
  }
  /// The other side has no such lease.
  void lost() { lost_ = true; }

  bool holds(time_point now) const { return !lost_ && now < until_; }
  bool is_lost() const { return lost_; }
  /// From when it is in doubt, without a further answer.
  time_point until() const { return until_; }

private:
  time_point until_;
  bool lost_ = false;
};

} // namespace ringmaster
