#pragma once

#include "planner/calibration/calibration.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace ringmaster {

/// Published trainings, in the file's order.
struct pretraining_rows {
  std::vector<training::published_training> known;
  std::vector<size_t> numbers;      ///< Of those, from 0, of all the file's rows.
  std::vector<std::string> skipped; ///< Models and systems of which nothing is known here, once each.
  uint64_t fingerprint = 0;         ///< Of what was read of the file, wherever it is and however its lines end.
};

/// The fingerprint of the rows to which the constants of this program were fitted: the first, third, ... of
/// bench/data/gpu_pretraining. A file with another one has no row that is known to be fitted to.
constexpr uint64_t calibrated_fingerprint = 0xcdc5131b26fe1bd4;

/// Reads a CSV file with the columns of bench/data/gpu_pretraining. What it does not say: attention in tiles, sharded
/// optimizer states and overlapped collectives, no recomputation. Errors: io_error; corrupt, with the line.
caf::expected<pretraining_rows> read_pretraining_rows(const std::string& file);

} // namespace ringmaster
