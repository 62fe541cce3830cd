#pragma once

#include "runtime/proof/rank_sets.hpp"
#include "runtime/proof/symbol_walk.hpp"
#include "runtime/schedule/schedule_walk.hpp"

#include <cstdint>
#include <vector>

namespace ringmaster {

/// The result of a proof: the first fault if there is one, and what the schedules send. Faults are invalid_argument.
using proof = walk_result;

/// Whether the schedules of all ranks do what the kind says, on every network and in every order of events. They are
/// walked on symbols in place of numbers (see `walk_schedules` for what that checks by itself); beyond it these are
/// faults:
/// - an element is read that no rank has written (a barrier's messages say nothing, so they may);
/// - two partial reductions are combined that are not of the same element, or that share a rank's contribution;
/// - a step reduces or finishes where the kind does not reduce; it finishes what is not the reduction over all ranks,
///   or combines what is finished;
/// - an output element is not what `meaning_of` says: each contribution exactly once, and finished exactly if the kind
///   reduces;
/// - BARRIER: a rank's end does not follow from every rank's beginning. What a rank knows travels with messages from
///   sender to receiver only, although the end of a send says something about the receiver, too: so the proof holds
///   where sends are buffered.
///
/// `request` has passed `check_request`; its own rank does not matter. `seed`: of the order of events. With
/// `addition_order::ranks` it is a fault, too, where two ranks or more are added up other than by a fold of all their
/// inputs, in rank order.
proof prove(proto::CollectiveKind kind, const plan_request& request, const std::vector<schedule>& ranks,
            uint64_t seed = 1, addition_order order = addition_order::any);

/// Elements of every rank's input and output.
std::vector<buffer_counts> buffer_counts_of(proto::CollectiveKind kind, const plan_request& request);

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
