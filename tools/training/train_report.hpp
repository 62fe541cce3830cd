#pragma once

#include "runtime/training/simulated/simulator.hpp"

#include <string>

namespace ringmaster {

/// What was simulated.
struct train_run {
  std::string_view strategy;
  training::model trained;
  uint32_t ranks = 0;
  const training::cost_model* costs = nullptr;
  bool uncut = false; ///< A rank works on all of its samples at once, and nobody has said so; JSON has 1 then.
};

/// For people: the whole, and a line a rank (of many ranks the first and the last ones).
std::string report_of(const train_run& x, const training::training_outcome& found);

/// A table of runs, in Markdown.
std::string comparison_header();
std::string comparison_row(const train_run& x, const training::training_outcome& found);

/// One object: time_s, end_s, peak_memory, peak_memory_unit, peak_rank, mfu_percent (null where the model has none),
/// bubble_fraction, communication_fraction, and a list of ranks. Times are in the cost model's unit, "time_unit".
std::string json_of(const train_run& x, const training::training_outcome& found);

/// JSON Trace Event Format: a track a rank, its memory as a counter, an arrow from each send to its receive.
std::string trace_of(const training::training_outcome& found, const training::cost_model& costs);

} // namespace ringmaster
