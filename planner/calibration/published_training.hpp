#pragma once

#include "planner/estimates/iteration_estimate.hpp"
#include "planner/systems/pretraining_software.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ringmaster::training {

/// A published training's throughput.
struct published_training {
  std::string model, system, release; ///< As the source names them.
  language_model trained;
  gpu_system on;
  gpu_generation generation = gpu_generation::hopper;
  training_setting how;
  std::optional<training_software> ran{}; ///< None: the newest, as `plan` takes it.
  bool corrected = false;                 ///< Whether `how` or `ran` is another than the row and its release have it.
  double seconds = 0;                     ///< Of an iteration.
};

double estimate_of(const published_training& x, std::span<const double> values);

/// The values of the constants by which the rows are best explained: soft-L1 of log(estimate / published), beyond
/// 4 % for dense models and 10 % for those with experts an outlier counts by its size only, and the pulls.
std::vector<double> fit_pretraining_constants(std::span<const published_training> rows);

} // namespace ringmaster::training
