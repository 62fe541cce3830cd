#pragma once

#include "planner/estimates/iteration_estimate.hpp"

#include <vector>

namespace ringmaster::training {

/// A plan: how the model is trained, and what an iteration then costs in closed form.
struct planned {
  parallel_setting how;
  iteration_estimate cost;
};

/// Bytes that a plan needs beyond what is available, on the device and in its share of the host's memory.
struct memory_lack {
  double device = 0, host = 0;
  double sum() const { return device + host; }
};
memory_lack lack_of(const planned& x, const gpu_system& on);

/// What a search found.
struct transformer_plans {
  uint64_t evaluated = 0;
  uint64_t fitting = 0;
  uint64_t endless = 0; ///< Of those evaluated: their time is not finite, and they are in no list.
  bool interrupted = false;
  std::vector<planned> best;      ///< Fit in memory, fastest first.
  std::vector<planned> others;    ///< The fastest of each schedule, of FSDP and of HSDP, except those in `best`.
  std::vector<planned> too_large; ///< Faster than the best, but do not fit; fastest first, at most three.
  std::vector<planned> pareto;    ///< No other plan that fits is both as fast and as small; fastest first.
  std::vector<planned> smallest;  ///< The one that lacks the least memory, if none fits.
};

} // namespace ringmaster::training
