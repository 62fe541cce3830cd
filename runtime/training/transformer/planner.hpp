#pragma once

#include "runtime/training/transformer/iteration_estimate.hpp"

#include <vector>

namespace ringmaster::training {

struct planned {
  parallel_setting how;
  iteration_estimate cost;
};

struct transformer_plans {
  uint64_t evaluated = 0;
  uint64_t fitting = 0;
  std::vector<planned> best;      ///< Fit in memory, fastest first.
  std::vector<planned> too_large; ///< Faster than the best, but do not fit; fastest first, at most three.
  std::vector<planned> pareto;    ///< No other that fits is both as fast and as small; fastest first.
};

/// Every way to train m with so many devices that divides: tensor x data x pipeline, micro-batch, schedule, chunks,
/// recomputation, sequence parallelism, ZeRO stage; in closed form. The `count` best, by time, then by memory.
transformer_plans plan_transformer(const gpt& m, const gpu_system& on, uint32_t devices, uint32_t global_batch,
                                   size_t count = 10);

} // namespace ringmaster::training
