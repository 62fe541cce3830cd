#pragma once

#include "runtime/text/json_field.hpp"
#include "training/pictures/train_run.hpp"
#include "training/simulated/simulator.hpp"

#include <string>

namespace ringmaster {

/// For people: the whole, and a line a rank (of many ranks the first and the last ones).
std::string report_of(const train_run& x, const training::training_outcome& found);

/// One object: time_s, end_s, peak_memory, peak_memory_unit, room, in that unit, and fits (null where a rank may hold
/// any amount), peak_rank, mfu_percent (null where the model has none), mfu_counts ("causal" or "full" attention, or
/// null), bubble_fraction, communication_fraction, and a list of ranks. Times are in the cost model's unit,
/// "time_unit".
json_value json_of(const train_run& x, const training::training_outcome& found);

} // namespace ringmaster
