#pragma once

#include "planner/systems/pretraining_software.hpp"

#include <caf/expected.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ringmaster::training {

/// A generation of training software: what it reaches of the same hardware.
struct software_generation {
  std::string_view name;
  std::string_view what;       ///< A phrase: which software, of when.
  double products = 1;         ///< Part of the newest software's rate of products: the constant that is fitted.
  training_software experts{}; ///< How it runs experts.
  std::optional<double>
    dense_error{}; ///< Mean deviation from published trainings of dense models; none: none compared.
  std::optional<double> experts_error{}; ///< The same with experts.
  /// The systems of these trainings; empty: all that have constants of their own.
  std::span<const std::string_view> systems{};
  std::span<const number_format> formats{}; ///< Their formats; empty: as `was_published` says.
  bool fully_sharded = false;               ///< Its trainings were all by FSDP or HSDP.

  /// Whether its products have the rate that was fitted to the trainings of the newest software.
  bool has_newest_rate() const { return products == 1 && name != software_of_a100; }
};

/// The newest first, which is the default. docs/cost_models.md says which trainings each was fitted to.
std::span<const software_generation> software_generations();
/// Null if there is none of this name.
const software_generation* generation_of(std::string_view name);

/// Whether published trainings by the software were on this system.
bool was_compared_on(const gpu_system& on, const software_generation& of);

/// What the accuracy of an estimate depends on.
struct estimated_training {
  bool experts = false;
  bool flash = true; ///< Attention.
  number_format computed_in = number_format::bf16;
};

/// How far estimates are off, and whether that was measured.
struct estimate_error {
  double tie = 0;             ///< Part of a time: smaller differences between two plans mean nothing.
  double least = 1, most = 1; ///< The time lies between these, as parts of the estimate.
  /// Why the error is assumed, a clause; none: it was measured beside published trainings.
  std::optional<std::string> assumed_because;
};

/// Of estimates with the system's software.
estimate_error error_of_estimates(const gpu_system& on, const estimated_training& x);

/// A system with the constants of another software instead of the newest one's. Errors: invalid_argument if the
/// system's constants are of other software, and no other was measured there.
caf::expected<gpu_system> with_generation(gpu_system x, const software_generation& of);

/// The same with another rate of products, for fitting it.
gpu_system with_generation(gpu_system x, const software_generation& of, double products);

} // namespace ringmaster::training
