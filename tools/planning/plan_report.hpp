#pragma once

#include "planner/plans/plan_advice.hpp"
#include "planner/systems/software_generation.hpp"
#include "tools/console/page_format.hpp"
#include "tools/planning/failures/failure_report.hpp"
#include "tools/planning/plan_run.hpp"

#include <caf/error.hpp>

#include <optional>
#include <string>

namespace ringmaster {

/// One of the best, and the same simulated, if it was.
struct confirmed_plan {
  training::planned plan;
  std::optional<simulated_plan> simulated;
  caf::error problem; ///< Why it was not simulated; none: it was.

  /// Of an iteration: as simulated, else in closed form.
  double seconds() const { return simulated ? simulated->seconds : plan.cost.seconds; }
  /// Whether not the whole step was simulated, but two shorter ones.
  bool by_shorter_steps() const { return simulated && simulated->micro_batches < plan.how.micro_batches(); }
};

/// How far the estimates of the question's plans are off.
training::estimate_error error_of(const training::plan_question& asked);

/// What is known of a plan's time.
struct time_band {
  double least = 0, most = 0; ///< Seconds: as far as the estimate may be off.
  bool tie = false;           ///< With the first plan: their difference is within the error.
};
/// `seconds`: of the plan's iteration; `first`: of the best one's.
time_band band_of(const training::plan_question& asked, double seconds, double first);

/// How many of the best plans were confirmed, and how.
struct confirmation_counts {
  size_t whole = 0, by_shorter_steps = 0, closed_form = 0;
};
confirmation_counts counts_of(const std::vector<confirmed_plan>& best);

/// A whole training, of so many tokens at a price for a GPU and an hour.
struct run_question {
  std::optional<double> tokens, price;
};

/// What was found, and what was asked.
struct plan_outcome {
  training::plan_question asked;
  training::transformer_plans found;
  std::vector<confirmed_plan> best; ///< In the order in which they are to stand.
  bool some_unconfirmed = false;    ///< The program was to end before all of them were simulated.
  run_question run;
  std::optional<uint32_t> least_devices;    ///< Where none fits; 0: none does, nothing: that was not found out.
  std::optional<failure_findings> failures; ///< Where they are asked for.
  training::near_questions near;            ///< Where nothing divides.
  training::fewer_devices fewer;            ///< Which take less time.
  training::near_batch batch;               ///< Which trains more samples a second.
};

/// What an iteration of a plan comes to.
struct plan_figures {
  double mfu = 0; ///< 1: the peak.
  double tokens_a_second = 0;
  double flops = 0;                         ///< Of a GPU and a second.
  double joules = 0;                        ///< Of an iteration, all GPUs; 0: the system's watts are not known.
  double days = 0, gpu_hours = 0, cost = 0; ///< Of the run; 0: not asked for.
};
/// `seconds`: of an iteration, simulated or in closed form.
plan_figures figures_of(const plan_outcome& x, const training::planned& plan, double seconds);

std::string report_of(const plan_outcome& x, const page_format& page = {});
std::string json_of(const plan_outcome& x);
/// A line a plan: the best, then the front.
std::string csv_of(const plan_outcome& x);

} // namespace ringmaster
