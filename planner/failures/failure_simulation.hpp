#pragma once

#include "planner/failures/failure_question.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <deque>
#include <limits>
#include <random>
#include <vector>

namespace ringmaster::training {

/// What became of a run. The times add up to its length.
struct failure_history {
  uint64_t interruptions = 0; ///< Failures of hosts that worked.
  uint64_t rollbacks = 0;     ///< Of them, those that went back to a checkpoint.
  uint64_t checkpoints = 0;   ///< Written to the end.
  uint64_t waits = 0;         ///< How often no copy of the model was left to train.
  double kept_s = 0;          ///< In which progress was made that was kept.
  double lost_s = 0;          ///< In which progress was made that was lost.
  double writing_s = 0;
  double stopped_s = 0; ///< Restarts, detections, joins.
  double waiting_s = 0; ///< For repairs.
  double smaller_s = 0; ///< Of all this but the waits, with fewer copies than all.
  double work_s = 0;    ///< The progress that was kept, by the time that all copies would take for it.

  /// All but the part that is in `smaller_s`, too.
  double sum_s() const noexcept { return kept_s + lost_s + writing_s + stopped_s + waiting_s; }
};

constexpr double life_shape_min = 0.1, life_shape_max = 10;

/// Errors: invalid_argument for an invalid question, interval or shape, or if the runs would take more than some
/// seconds to play.
caf::error check_playable(const failure_question& asked, double interval_s, double life_shape, uint32_t runs);

/// Plays asked.run_s of the job, failure by failure, with lives of the hosts drawn from the seed; equal arguments,
/// equal histories. All hosts are new and up in the beginning. Checkpoints are written every `interval_s`. `life_shape`
/// is Weibull's (host_life). Policies are simulated to the second, as failure_question.hpp and goodput.hpp
/// describe them:
/// - a failure in a restart lets it begin again; one in a write loses what would have been written;
/// - where a return lets a copy more train (`smaller`), training stops, writes a checkpoint and restarts;
/// - a shrink loses the current step; a host joins at the end of a step, or of the current stop.
/// Errors: `check_playable`'s.
caf::expected<failure_history> simulate_failures(const failure_question& asked, recovery how, double interval_s,
                                                 uint64_t seed, double life_shape = 1);

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

/// A figure over several runs.
struct run_spread {
  double mean = 0, least = 0, most = 0;
};

/// The outcome of several simulated runs; parts as in `recovery_outcome`.
struct played_runs {
  run_spread effective, goodput, waiting, smaller;
  run_spread interruptions; ///< Of a run.
};

/// simulate_failures with the seeds 1 to `runs`, which is 1 at least. Errors: `check_playable`'s.
caf::expected<played_runs> play_runs(const failure_question& asked, recovery how, double interval_s, uint32_t runs,
                                     double life_shape = 1);

} // namespace ringmaster::training
