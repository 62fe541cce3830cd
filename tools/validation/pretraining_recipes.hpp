#pragma once

#include "runtime/training/transformer/calibrated/published_training.hpp"

namespace ringmaster {

/// How the source's software ran models with experts, as its recipes say (scripts/performance of Megatron Bridge
/// v0.2.1 for 25.11, v0.3.0 and v0.3.1 for 26.02, v0.4.0 for 26.04, v0.4.2 for 26.04.01, v0.5.0 for 26.06, v0.6.0
/// for 26.08); the table of results says none of it. `months` after 2025-11. Where there is no recipe: as most of that
/// system's.
training::experts_software experts_software_of(const training::language_model& m, const training::gpu_system& on,
                                               training::number_format computed_in, double months);

} // namespace ringmaster
