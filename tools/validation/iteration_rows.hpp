#pragma once

#include "planner/calibration/calibration.hpp"

#include <caf/expected.hpp>

#include <string>
#include <vector>

namespace ringmaster {

/// Measured iterations in a CSV file with a header: GPUs, global batch, micro batch, hidden size, attention heads,
/// layers, sequence length, tensor, data and pipeline parallelism, iteration time (ms); names with a '#' before them
/// and further columns may be there. Rows of more than 8 GPUs are of newer software, with full recomputation, as
/// docs/cost_models.md says.
/// Errors: io_error; corrupt, with file and line: a missing column, not a number, ranks or batches that do
/// not divide.
caf::expected<std::vector<training::measured_iteration>> read_iteration_rows(const std::string& file);

} // namespace ringmaster
