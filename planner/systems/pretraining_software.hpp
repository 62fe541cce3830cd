#pragma once

#include "planner/systems/gpu_system.hpp"

#include <span>
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

} // namespace ringmaster::training
