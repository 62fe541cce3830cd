#pragma once

#include "tools/console/ending_signals.hpp"
#include "tools/console/progress.hpp"
#include "tools/planning/failures/failure_options.hpp"
#include "tools/planning/plan_options.hpp"
#include "tools/planning/plan_report.hpp"
#include "tools/planning/plan_timeline.hpp"
#include "tools/simulated_training/known_cost_models.hpp"
#include "tools/simulated_training/transformer_options.hpp"

#include <caf/expected.hpp>

#include <cstdio>
#include <optional>
#include <string>

namespace ringmaster {

/// So many plans are printed.
inline constexpr size_t best_shown = 10;

/// All that `ringmaster plan` is told.
struct plan_call_options {
  const known_cost_model* costs = *parse_planned_cost_model("transformer");
  std::optional<uint32_t> gpus, layers, global_batch;
  std::optional<uint64_t> memory;
  transformer_options transformer;
  plan_filter_options filter;
  plan_memory_options memory_options;
  plan_run_options run;
  failure_options failures;
  plan_timeline_options timeline;
  training::language_model trained;
  bool json = false, csv = false;
  bool wide = false; ///< Tables show all of their columns.
  std::string svg;
};

/// A line with progress; false when the program is to end.
class watched_progress {
public:
  explicit watched_progress(std::string what) : shown_(std::move(what)) {}
  bool operator()(double part) {
    shown_.at(part);
    interrupted_ = ending_signal() != 0 || interrupted_;
    return !interrupted_;
  }
  bool interrupted() const { return interrupted_; }

private:
  progress shown_;
  bool interrupted_ = false;
};

/// The best plans for a transformer, simulated, and what else there is to say of them: what would fit where none does,
/// fewer GPUs and other batches, what failures leave. `err` is told how fast the search was. Errors: invalid_argument
/// for a model or a system of which no plan has a finite time, and those of the failures' options.
caf::expected<plan_outcome> search_plans(const plan_call_options& opts, std::FILE* err);

} // namespace ringmaster
