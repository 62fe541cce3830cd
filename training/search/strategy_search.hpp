#pragma once

#include "training/simulated/cost_model.hpp"
#include "training/strategies/strategies.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace ringmaster::training {

/// What no simulated step of a strategy can stay below.
struct strategy_bounds {
  double time = 0;     ///< Until its last event: compute, hops, tensor-parallel collectives; loading, sums and updates.
  uint64_t memory = 0; ///< Of its peak: weights, optimizer states, sums, inputs of the micro-batches under way.
};

/// The strategy must accept the model and the world.
strategy_bounds bounds_of(const known_strategy& which, const model& m, uint32_t world_size, const cost_model& costs);

/// A strategy, with its choices, and what its simulated step takes.
struct searched {
  const known_strategy* which = nullptr;
  model trained;
  double time = 0, end = 0;
  strategy_bounds bound;
  uint64_t peak_memory = 0;
  double bubble = 0, communication = 0;
};

struct search_outcome {
  uint64_t candidates = 0;
  uint64_t simulated = 0;
  uint64_t open = 0;             ///< Might be among the best or on the front: to simulate them would take too long.
  uint64_t open_best = 0;        ///< Of these, those that might be among the best.
  std::vector<searched> best;    ///< Within the memory limit, fastest first; of equals the smallest first.
  std::optional<searched> plain; ///< The fastest ddp-accumulate within the limit.
  std::vector<searched> pareto;  ///< Faster than all that are as small; fastest first.
};

/// About the number of operations of a step of it on all ranks.
uint64_t operations_expected(const known_strategy& which, const model& trained, uint32_t world_size);

/// Told now and then which part of the simulations it has done; false: that is enough.
using search_watch = std::function<bool(double part)>;

/// Every strategy with every choice of tensor and data sides, micro-batch and chunks that are powers of two, where
/// it accepts them. Simulated are those whose lower bounds leave it open whether they are among the `count` best, or on
/// the front of time and memory, as far as some hundred million operations go. What needs more than `memory_limit` is
/// left out.
search_outcome search_strategies(uint32_t layers, uint64_t global_batch, uint32_t world_size, const cost_model& costs,
                                 uint64_t memory_limit = UINT64_MAX, size_t count = 10, const search_watch& watch = {});

} // namespace ringmaster::training
