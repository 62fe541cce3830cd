#pragma once

#include "planner/systems/gpu_system.hpp"

#include <caf/expected.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ringmaster::training {

/// Megatron Core's of 2025 to 2026 on NVIDIA's Hopper and Blackwell: what it reaches of what the hardware has. Fitted
/// to published throughputs; docs/cost_models.md.
struct fitted_constant {
  std::string_view name;
  double value; ///< What the fit found.
  double start;
  double pull; ///< Of its logarithm to that of the start.
};
std::span<const fitted_constant> pretraining_constants();

/// Whether those of the values that are parts of something are at most all of it.
bool are_parts(std::span<const double> values);

/// Of published trainings with experts, their time beside what `plan` estimates for the same layout with the newest
/// software: a test holds both to the rows.
inline constexpr double published_beside_plans_median = 1.2, published_beside_plans_worst = 2.9;
/// And beside the best plan that fits on as many GPUs.
inline constexpr double published_beside_best_median = 1.4, published_beside_best_worst = 3.9;

/// Whether any published training was of such a model in such a format: a test holds it to the rows.
constexpr bool was_published(number_format computed_in, bool with_experts) {
  return with_experts ? computed_in != number_format::nvfp4 : computed_in != number_format::bf16;
}

enum class gpu_generation : uint8_t { hopper, blackwell, blackwell_ultra };

/// A system's hardware, with what the software reaches on it, as `values` of those constants say.
gpu_system with_pretraining_software(gpu_system hardware, gpu_generation of, std::span<const double> values);
/// As the fit found them.
gpu_system with_pretraining_software(gpu_system hardware, gpu_generation of);

/// A system of other software, which was fitted without experts and without FSDP: what these cost beside their products
/// is as fitted on Hopper, at the least graphs of a layer's parts.
gpu_system with_pretraining_rest(gpu_system x);

/// What the host still launches around experts: all of it, what is beside graphs of a layer's parts (attention, router,
/// what comes before dispatch), or the graph of a whole iteration, which needs experts' products to be one kernel with
/// what is between them, and that there is in mxfp8 only.
enum class launch_graphs : uint8_t { none, parts, whole };

struct training_software {
  launch_graphs graphs = launch_graphs::none;
  bool hides_dispatch = false;    ///< Behind another micro-batch's work, where there is one.
  bool dispatches_fused = false;  ///< By DeepEP or HybridEP; else by all_to_all, for which more is launched.
  bool registers_buffers = false; ///< FSDP's, with NCCL, whose collectives then take next to none of the processors.
};

/// A system with the software that a training ran, which hides dispatch in so much of its layers (`paired_part`)
/// whether that is faster or not. `with_pretraining_software` has the newest: a whole iteration's graph where there is
/// one, else of parts, DeepEP, and dispatch hidden where that is faster.
gpu_system with_software(gpu_system x, const training_software& ran, double paired_part,
                         std::span<const double> values);

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
