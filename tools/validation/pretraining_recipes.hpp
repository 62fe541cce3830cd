#pragma once

#include "planner/calibration/calibration.hpp"

namespace ringmaster {

/// How the source's software ran a model, as its recipes say (scripts/performance of Megatron Bridge
/// v0.2.1 for 25.11, v0.3.0 for 26.02, v0.3.1 for 26.02.01, v0.4.0 for 26.04, v0.4.2 for 26.04.01, v0.5.0 for 26.06,
/// v0.6.0 for 26.08); the table of results says none of it. `months` after 2025-11. Where there is no recipe: as most
/// of that system's.
training::training_software software_of(const training::language_model& m, const training::gpu_system& on,
                                        training::number_format computed_in, double months);

/// The settings of a row that can be wrong.
struct published_layout {
  training::number_format computed_in;
  uint32_t micro_batch, pipeline, chunks, expert;

  friend constexpr bool operator==(const published_layout&, const published_layout&) = default;
};

/// Sets the software that ran a row, `months` after 2025-11. A row whose settings are known to be wrong gets those that
/// ran.
void correct(training::published_training& row, double months);

} // namespace ringmaster
