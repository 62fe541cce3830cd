#pragma once

#include "runtime/schedule/collective.hpp"
#include "runtime/schedule/schedule_check.hpp"

#include <caf/error.hpp>

#include <cstdint>
#include <vector>

namespace ringmaster {

/// The result of walking the schedules of all ranks together.
struct walk_result {
  caf::error fault; ///< The first fault: invalid_argument with rank, round, step and reason.
  uint32_t rounds = 0;
  std::vector<uint64_t> elements_sent, messages_sent, elements_received, messages_received; ///< By rank.
};

/// Is called for each step of a walk.
class walk_observer {
public:
  virtual ~walk_observer() = default;

  /// The step is under way.
  virtual void started(step_ref) {}
  /// `to` takes what `from` offers, and both end; the two are the same for a copy or a reduce. An error is the fault at
  /// which the walk stops.
  virtual caf::error moved(step_ref from, step_ref to) = 0;
};

/// Walks the schedules of all ranks by the rules in include/ringmaster/schedule.hpp: a send ends only when its peer has
/// read the block, and no rank waits for the others between two rounds. What can be done next is done in an order drawn
/// from `seed`. Stops at the first fault: what `check_schedule` and `match_steps` find, ranks that differ in their
/// number of rounds, blocks of different sizes that meet, a deadlock, and errors of the observer.
///
/// Whether there is a deadlock, and what every step reads, does not depend on the order: which send meets which receive
/// is fixed, a step that can start stays so whatever else happens, and the ranges of steps that are under way at once
/// keep apart. One walk without a fault therefore speaks for all orders.
walk_result walk_schedules(const std::vector<schedule>& ranks, const std::vector<buffer_counts>& counts, uint64_t seed,
                           walk_observer& observer);

/// Which send meets which receive, over all ranks.
struct step_partners {
  static constexpr uint32_t none = UINT32_MAX;

  std::vector<std::vector<uint32_t>> of; ///< [rank][step]: the step of its peer; none for a copy or a reduce.
  caf::error fault;                      ///< invalid_argument: a message that no rank takes, or that no rank sends.
};

/// Matches sends and receives up to the first fault. The schedules have passed `check_schedule`. Takes time in
/// proportion to the steps and to the square of the ranks.
step_partners match_steps(const std::vector<schedule>& ranks);

} // namespace ringmaster
