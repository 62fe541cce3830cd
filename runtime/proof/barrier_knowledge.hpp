#pragma once

#include "runtime/proof/rank_sets.hpp"
#include "runtime/schedule/schedule_walk.hpp"

namespace ringmaster {

/// Tracks which ranks each rank knows to have begun, step by step: a message carries what its sender knew when the send
/// started.
class barrier_knowledge : public walk_observer {
public:
  explicit barrier_knowledge(const std::vector<schedule>& ranks);

  void started(step_ref x) override;
  caf::error moved(step_ref from, step_ref to) override;

  /// After a walk without a fault. Error: a rank may end before another one has begun.
  caf::error check_end();

private:
  const std::vector<schedule>& ranks_;
  rank_sets sets_;
  std::vector<rank_sets::id> now_;                ///< By rank: what it knows from the steps that have ended.
  std::vector<rank_sets::id> begun_;              ///< By rank: what it knew when the current round began.
  std::vector<uint32_t> round_;                   ///< By rank.
  std::vector<std::vector<rank_sets::id>> known_; ///< [rank][step]: at its start; then at its end.
};

} // namespace ringmaster
