#pragma once

#include "planner/systems/pretraining_software.hpp"

#include <caf/expected.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ringmaster::training {

/// Training software of some time, by which what is reached of the same hardware differs.
struct software_generation {
  std::string_view name;
  std::string_view what;             ///< A phrase: which software, of when.
  double products = 1;               ///< Part of the newest software's rate of products: the constant that is fitted.
  training_software experts;         ///< What it has around experts.
  std::optional<double> dense_error; ///< Mean deviation from published trainings of dense models; none: none compared.
  std::optional<double> experts_error;       ///< The same with experts.
  std::span<const std::string_view> systems; ///< On which these trainings were; empty: on all that have own constants.
  std::span<const number_format> formats;    ///< In which they were; empty: as `was_published` says.
  bool fully_sharded = false;                ///< Its trainings were all by FSDP or HSDP.

  /// Whether its products have the rate that was fitted to the trainings of the newest software.
  bool has_newest_rate() const { return products == 1 && name != software_of_a100; }
};

/// The newest first, which is the default. docs/cost_models.md says what each was fitted to.
std::span<const software_generation> software_generations();
/// Nothing that has this name: a null pointer.
const software_generation* generation_of(std::string_view name);

/// Whether published trainings by the software were on this system.
bool was_compared_on(const gpu_system& on, const software_generation& of);

/// What decides how well an estimate is known.
struct estimated_training {
  bool experts = false;
  bool flash = true; ///< Attention.
  number_format computed_in = number_format::bf16;
};

/// How far estimates are off, and how that is known.
struct estimate_error {
  double tie = 0;             ///< Part of a time: smaller differences between two plans mean nothing.
  double least = 1, most = 1; ///< The time lies between these, as parts of the estimate.
  /// Why the error is assumed, a clause; none: it was measured beside published trainings.
  std::optional<std::string> assumed_because;
};

/// Of estimates with the system's software.
estimate_error error_of_estimates(const gpu_system& on, const estimated_training& x);

/// A system whose constants are the newest software's, with those of another one. Errors: invalid_argument where the
/// system's constants are of other software, of which nothing newer or older was measured there.
caf::expected<gpu_system> with_generation(gpu_system x, const software_generation& of);

/// The same for a constant that is being fitted, in place of the generation's.
gpu_system with_generation(gpu_system x, const software_generation& of, double products);

} // namespace ringmaster::training
