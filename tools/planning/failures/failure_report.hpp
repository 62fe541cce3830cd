#pragma once

#include "planner/failures/goodput.hpp"
#include "planner/failures/played_runs.hpp"
#include "runtime/text/json_field.hpp"
#include "tools/console/page_format.hpp"

#include <optional>
#include <string>
#include <vector>

namespace ringmaster {

/// What failures leave of a job with one way to go on, and what became of runs that were played.
struct reported_recovery {
  training::recovery_outcome outcome;
  std::optional<training::played_runs> played;
};

constexpr double next_to_nothing = 1e-6; ///< Goodput below which a run has no end.

/// How many hosts had better stand by.
struct spares_advice {
  uint32_t spares = 0;
  double goodput = 0;
  double gpu_hours = 1; ///< Of a run, those of the spares included, beside what it takes with the spares asked for.
};

/// What is told of a job's failures.
struct failure_findings {
  training::failure_question asked;
  training::failure_answer answer;
  std::vector<reported_recovery> recoveries; ///< Shrinking only where it was asked for.
  std::optional<spares_advice> cheaper;      ///< Where more spares save more than they cost, a hundredth at least.

  /// Of the way to go on that keeps the most with as many spares as were asked for.
  double best_goodput() const;
  /// Which that is.
  std::string best_way() const;
};

/// Plays so many runs of each; 0: none. Errors: invalid_argument, where that would take too long.
caf::expected<failure_findings> find_failures(const training::failure_question& asked, bool shrink, uint32_t plays,
                                              double life_shape);

/// Lines that a person reads.
std::string report_of(const failure_findings& found, const page_format& page = {});
/// One object, where a value is expected.
json_value json_of(const failure_findings& found);

} // namespace ringmaster
