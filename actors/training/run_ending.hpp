#pragma once

#include "actors/training/group_calls.hpp"
#include "actors/training/model_snapshots.hpp"
#include "actors/training/rank_actors.hpp"

#include <functional>
#include <memory>

namespace ringmaster::training {

/// How a run ends: with a snapshot of the model as it is then, if the watcher is to get one, and when all ranks have
/// freed their memory. Lives in the TRAINER.
class run_ending {
public:
  /// `carry_out` is called with what follows.
  run_ending(trainer_actor::pointer self, std::shared_ptr<const trainer_settings> settings, step_change& change,
             model_snapshots& snapshots, rank_actors& ranks, std::function<void(step_change::decisions)> carry_out)
    : self_(self), settings_(std::move(settings)), change_(change), snapshots_(snapshots), ranks_(ranks),
      carry_out_(std::move(carry_out)) {}
  run_ending(const run_ending&) = delete;

  /// All steps are done.
  void take_final_snapshot(uint64_t attempt);
  /// The run is to end before its last step: the trainer gets `expire` when time for the snapshot is up.
  void end_with_snapshot(const step_change::end_with_snapshot& x);
  void take_last_snapshot();
  /// Ends the communicators (null: there are none), then the ranks, then the trainer.
  void end(const std::shared_ptr<group_calls>& calls, const caf::error& problem);

private:
  /// For the last snapshot of a run that is asked to stop.
  static constexpr caf::timespan snapshot_limit = std::chrono::seconds{5};

  trainer_actor::pointer self_;
  std::shared_ptr<const trainer_settings> settings_;
  step_change& change_;
  model_snapshots& snapshots_;
  rank_actors& ranks_;
  std::function<void(step_change::decisions)> carry_out_;
};

} // namespace ringmaster::training
