#pragma once

#include "runtime/training/transformer/systems/pretraining_software.hpp"

#include <caf/expected.hpp>

#include <span>
#include <string>
#include <string_view>

namespace ringmaster::training {

/// Training software of some time, by which what is reached of the same hardware differs.
struct software_generation {
  std::string_view name;
  std::string_view what;      ///< A phrase: which software, of when.
  double products = 1;        ///< Part of the newest software's rate of products: the constant that is fitted.
  training_software experts;  ///< What it has around experts.
  double dense_error = 0;     ///< How far estimates are off from published trainings of dense models, the mean.
  double experts_error = 0;   ///< The same with experts.
  bool fully_sharded = false; ///< Its trainings were all by FSDP or HSDP.

  /// Whether its products have the rate that was fitted to the trainings of the newest software.
  bool has_newest_rate() const { return products == 1 && name != software_of_a100; }
};

/// The newest first, which is the default. docs/cost_models.md says what each was fitted to.
std::span<const software_generation> software_generations();
/// Nothing that has this name: a null pointer.
const software_generation* generation_of(std::string_view name);

/// How far an estimate is off, the mean, with the system's software, of models with experts or without: a part of it.
double estimate_error(const gpu_system& on, bool experts);

/// A system whose constants are the newest software's, with those of another one. Errors: invalid_argument where the
/// system's constants are of other software, of which nothing newer or older was measured there.
caf::expected<gpu_system> with_generation(gpu_system x, const software_generation& of);

/// The same for a constant that is being fitted, in place of the generation's.
gpu_system with_generation(gpu_system x, const software_generation& of, double products);

} // namespace ringmaster::training
