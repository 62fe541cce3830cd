#pragma once

#include "planner/estimates/iteration_estimate.hpp"
#include "planner/systems/pretraining_software.hpp"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster::training {

/// A measured iteration.
struct measured_iteration {
  language_model trained;
  training_setting how;
  double seconds = 0;
  bool older_software = false; ///< Whose launches are not scaled: gpu_system::launch_scale.
};

/// The estimate for it, in seconds.
double estimate_of(const measured_iteration& x, const gpu_system& on);

/// Relative deviations of estimates from measurements.
struct deviation {
  size_t count = 0;
  double mean_absolute = 0, median_absolute = 0, mean = 0, worst = 0;
};
deviation deviation_of(std::span<const double> relative);
deviation deviation_of(std::span<const measured_iteration> rows, const gpu_system& on);

/// The constants that are fitted, and from where; the others are set by hand from data sheets and what such software
/// reaches.
struct calibrated_constant {
  std::string_view name;
  double start;
};
std::span<const calibrated_constant> calibrated_constants();

/// `others` with those constants under which the rows are best explained: the sum over rows of soft-L1 of
/// log(estimate / measured), beyond 5 % an outlier counts by its size only, both kinds of software with 5 and 3
/// parts of the weight, and a weak pull of each constant to its start. A pattern search over their logarithms;
/// deterministic.
gpu_system calibrate(gpu_system others, std::span<const measured_iteration> rows);

/// Positive numbers near `start` under which `cost` is the least that is found: sweeps over them with steps of their
/// logarithms that are halved, and further along where a whole sweep went (Hooke and Jeeves 1961). Deterministic.
std::vector<double> pattern_search(std::vector<double> start,
                                   const std::function<double(std::span<const double>)>& cost);

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
