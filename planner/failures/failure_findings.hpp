#pragma once

#include "planner/failures/failure_simulation.hpp"
#include "planner/failures/goodput.hpp"

#include <optional>
#include <vector>

namespace ringmaster::training {

constexpr double goodput_min = 1e-6; ///< A run with less goodput never finishes.

/// What failures leave of a job with one way to recover, and the outcome of runs that were played.
struct recovery_finding {
  recovery_outcome outcome;
  std::optional<played_runs> played;
};

/// How many spare hosts would be cheaper.
struct spares_advice {
  uint32_t spares = 0;
  double goodput = 0;
  double gpu_hours = 1; ///< Of a run, spares included, relative to those with the spares asked for.
};

/// What failures leave of a job.
struct failure_findings {
  failure_question asked;
  failure_answer answer;
  std::vector<recovery_finding> recoveries; ///< Shrinking only if it was asked for.
  std::optional<spares_advice> cheaper;     ///< Where more spares save more than they cost, by 1 % at least.

  /// The recovery with the most goodput that the spares allow.
  const recovery_finding& best() const;
  double best_goodput() const { return best().outcome.goodput; }
};

/// Plays `plays` runs of each way to recover; 0: none. Errors: invalid_argument, where that would take too long.
caf::expected<failure_findings> find_failures(const failure_question& asked, bool shrink, uint32_t plays,
                                              double life_shape);

} // namespace ringmaster::training
