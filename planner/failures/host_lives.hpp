#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <random>
#include <vector>

namespace ringmaster::training {

constexpr double never_s = std::numeric_limits<double>::infinity(); ///< The time of an event that does not happen.

/// How long hosts last: a Weibull distribution with that mean. Shape 1 is the exponential one; below 1 those fail that
/// are new, above 1 those that are old.
struct host_life {
  double mean_s = 1;
  double shape = 1;
};

/// A job's hosts in virtual time: which ones work, when each fails, and when it is back, repaired. A host that
/// does not work does not age. Drawn from a seed, the same numbers with every compiler. All times are seconds.
class host_lives {
public:
  /// `endless`: spares never run out.
  host_lives(uint32_t hosts, bool endless, host_life life, double repair_s, uint64_t seed);

  /// From now on `count` hosts work; this many must be available.
  void employ(uint32_t count);
  /// The working hosts have worked for this long.
  void work(double seconds) { worked_s_ += seconds; }
  /// The next one's, of those that work; never_s where none does.
  double until_failure() const noexcept { return next_ - worked_s_; }
  void fail(double now);
  /// never_s where none is down.
  double next_return() const noexcept;
  void take_back();
  uint32_t down() const noexcept { return static_cast<uint32_t>(returns_.size()); }

private:
  double draw();
  void find_next();

  double scale_s_, power_;
  double repair_s_;
  bool endless_;
  std::mt19937_64 numbers_;
  double worked_s_ = 0, next_;
  std::vector<double> fail_at_; ///< Of those that work, by worked_s_.
  std::vector<double> idle_;    ///< What is left of their lives.
  std::deque<double> returns_;  ///< When those that are down come back, soonest first: all repairs take as long.
};

} // namespace ringmaster::training
