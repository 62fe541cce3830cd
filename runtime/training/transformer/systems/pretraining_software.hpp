#pragma once

#include "runtime/training/transformer/systems/gpu_system.hpp"

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

enum class gpu_generation : uint8_t { hopper, blackwell, blackwell_ultra };

/// A system's hardware, with what the software reaches on it, as `values` of those constants say.
gpu_system with_pretraining_software(gpu_system hardware, gpu_generation of, std::span<const double> values);
/// As the fit found them.
gpu_system with_pretraining_software(gpu_system hardware, gpu_generation of);

/// Part of the first software's launches around experts that is left in that of so many months after 2025-11.
double expert_launches_after(double months);

} // namespace ringmaster::training
