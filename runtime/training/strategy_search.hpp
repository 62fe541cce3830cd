#pragma once

#include "runtime/training/cost_model.hpp"
#include "runtime/training/strategies.hpp"

#include <optional>
#include <vector>

namespace ringmaster::training {

/// A strategy, with its choices, and what its simulated step takes.
struct searched {
  const known_strategy* which = nullptr;
  model trained;
  double time = 0, end = 0;
  double bound = 0; ///< The lower one of its end.
  uint64_t peak_memory = 0;
  double bubble = 0, communication = 0;
};

struct search_outcome {
  uint64_t candidates = 0;
  uint64_t too_long = 0;         ///< Left out, since to simulate them would take too long.
  uint64_t simulated = 0;        ///< The others are slower by a lower bound than the last of the best.
  std::vector<searched> best;    ///< Within the memory limit, fastest first; of equals the smallest first.
  std::optional<searched> plain; ///< The fastest ddp-accumulate within the limit.
  std::vector<searched> pareto;  ///< Of the simulated ones; fastest first.
};

/// Every strategy with every choice of tensor and data sides, micro-batch and chunks that are powers of two, where
/// it accepts them: simulated in the order of a lower bound, their compute, hops and tensor-parallel collectives,
/// until that passes the last of the `count` best, and as many more as take some seconds, for the front. What needs
/// more than `memory_limit` is left out.
search_outcome search_strategies(uint32_t layers, uint64_t global_batch, uint32_t world_size, const cost_model& costs,
                                 uint64_t memory_limit = UINT64_MAX, size_t count = 10);

} // namespace ringmaster::training
