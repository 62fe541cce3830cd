#pragma once

#include "planner/failures/failure_question.hpp"

#include <caf/expected.hpp>

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
/// is Weibull's (host_lives.hpp). Policies are simulated to the second, as failure_question.hpp and goodput.hpp
/// describe them:
/// - a failure in a restart lets it begin again; one in a write loses what would have been written;
/// - where a return lets a copy more train (`smaller`), training stops, writes a checkpoint and restarts;
/// - a shrink loses the current step; a host joins at the end of a step, or of the current stop.
/// Errors: `check_playable`'s.
caf::expected<failure_history> simulate_failures(const failure_question& asked, recovery how, double interval_s,
                                                 uint64_t seed, double life_shape = 1);

} // namespace ringmaster::training
