#pragma once

#include "planner/estimates/iteration_estimate.hpp"
#include "planner/failures/failure_findings.hpp"
#include "planner/plans/plan_advice.hpp"
#include "planner/search/plan_confirmation.hpp"
#include "planner/systems/pretraining_software.hpp"

#include <caf/error.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster::training {

/// A whole training run: the tokens it trains on, and the price of a GPU for an hour.
struct run_question {
  std::optional<double> tokens, price;
};

/// What was asked, and what was found.
struct plan_outcome {
  plan_question asked;
  transformer_plans found;
  double search_seconds = 0;        ///< Wall-clock time of the closed-form search.
  std::vector<confirmed_plan> best; ///< In the order in which they are reported.
  bool some_unconfirmed = false;    ///< Interrupted before all of them were simulated.
  run_question run;
  std::optional<uint32_t> least_devices;    ///< Where no plan fits; 0: on no number of devices; nothing: interrupted.
  std::optional<failure_findings> failures; ///< If they were asked for.
  near_questions near;                      ///< Where no plan divides the model.
  fewer_devices fewer;                      ///< Fewer devices that take less time.
  near_batch batch;                         ///< A batch that trains more samples a second.
};

/// What a search is doing.
enum class search_stage : uint8_t { searching, simulating, counting_devices, advising };

/// Is given the stage and its finished part, 0 to 1, by one thread at a time; returns false to stop the search.
using stage_watch = std::function<bool(search_stage stage, double part)>;

/// What a search is asked for.
struct search_request {
  plan_question asked;
  run_question run;
  size_t count = 10;      ///< The best plans to report.
  bool has_advice = true; ///< Also tries fewer devices and other batches.
};

/// Searches the best plans for a transformer, simulates them, and finds what else is worth knowing: what would fit
/// where none does, fewer devices, other batches. Errors: invalid_argument for a model or a system of which some plan
/// has no finite time.
caf::expected<plan_outcome> search_plans(const search_request& request, const stage_watch& watch);

/// The job that the best plan of the outcome is, for a question about failures. The outcome has a plan.
failure_question failing_job_of(const plan_outcome& x);

/// How far the estimates of the question's plans are off.
estimate_error error_of(const plan_question& asked);

/// What is known of a plan's time.
struct time_band {
  double least = 0, most = 0; ///< Seconds, by the error of the estimate.
  bool tie = false;           ///< With the first plan: the difference is within the error.
};
/// `seconds`: of the plan's iteration; `first`: of the best one's.
time_band band_of(const plan_question& asked, double seconds, double first);

/// The rates and costs of a plan.
struct plan_figures {
  double mfu = 0; ///< 1: the peak.
  double tokens_a_second = 0;
  double flops = 0;                         ///< Of a GPU and a second.
  double joules = 0;                        ///< Of an iteration, all GPUs; 0: the system's watts are not known.
  double days = 0, gpu_hours = 0, cost = 0; ///< Of the run; 0: not asked for, or it never finishes.
};
/// `seconds`: of an iteration, simulated or in closed form.
plan_figures figures_of(const plan_outcome& x, const planned& plan, double seconds);

/// The part of the time that failures leave, by the best way to recover; 1 if they were not asked for.
double goodput_of(const plan_outcome& x);

/// GPUs of spare hosts, which are rented as well.
uint32_t spare_gpus(const plan_outcome& x);

/// One of the parts that a whole consists of: "bubble", 0.12 s.
struct named_part {
  std::string name;
  double amount = 0;

  friend bool operator==(const named_part&, const named_part&) = default;
};
using named_parts = std::vector<named_part>;

/// Where an iteration's seconds go, without communication that other work hides. The parts add up to the iteration.
named_parts seconds_by_part(const iteration_estimate& x);
/// Communication that other work hides.
named_parts hidden_by_part(const iteration_estimate& x);
/// What a rank's memory is used for.
named_parts bytes_by_part(const memory_parts& x);

/// The same part of two plans, A and B.
struct part_difference {
  std::string name;
  double a = 0, b = 0;
};
/// All parts that are not 0 in both, the largest difference first.
std::vector<part_difference> differences(const named_parts& a, const named_parts& b);

} // namespace ringmaster::training
