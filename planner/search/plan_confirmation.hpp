#pragma once

#include "planner/plans/plan_search.hpp"
#include "planner/search/plan_simulation.hpp"

#include <caf/error.hpp>

#include <chrono>
#include <optional>
#include <vector>

namespace ringmaster::training {

/// One of the best plans, and its simulation.
struct confirmed_plan {
  planned plan;
  std::optional<simulated_plan> simulated;
  caf::error problem; ///< Why it was not simulated; none: it was.

  /// Of an iteration: as simulated, else in closed form.
  double seconds() const { return simulated ? simulated->seconds : plan.cost.seconds; }
  /// Whether two shorter steps were simulated in place of the whole one.
  bool by_shorter_steps() const { return simulated && simulated->micro_batches < plan.how.micro_batches(); }
};

/// How many of the best plans were confirmed, and how.
struct confirmation_counts {
  size_t whole = 0, by_shorter_steps = 0, closed_form = 0;
};
confirmation_counts counts_of(const std::vector<confirmed_plan>& best);

/// What confirming may cost in all. The operations are divided among the plans before anything is simulated, so the
/// same question has the same answer each time. The time is a limit for slow machines.
struct confirmation_limits {
  uint64_t operations = 30'000'000; ///< Expected number; some three seconds on two cores.
  std::chrono::milliseconds time{8000};
};

/// Simulates the best plans as far as the limits allow, on up to four threads, then those of the others whose closed
/// form is faster than the best simulated time. Sorts them by time, plans that do not fit last, and keeps as many as
/// the best were.
///
/// A plan whose whole step is too long is simulated by two shorter steps (`plan_simulation::steady`). If that is too
/// long as well, or no time is left, it is not simulated, and its `problem` says why. It is then sorted by its closed
/// form times the mean ratio of simulated time to closed form. `watch` is called by one thread at a time.
std::vector<confirmed_plan> confirm_plans(const plan_question& asked, const transformer_plans& found,
                                          const plan_watch& watch, const confirmation_limits& limits = {});

} // namespace ringmaster::training
