#pragma once

#include "training/simulated/cost_model.hpp"
#include "training/strategies/strategies.hpp"

namespace ringmaster::training {

/// What no simulated step of a strategy can stay below.
struct strategy_bounds {
  double time = 0;     ///< Until its last event: compute, hops, tensor-parallel collectives; loading, sums and updates.
  uint64_t memory = 0; ///< Of its peak: weights, optimizer states, sums, inputs of the micro-batches under way.
};

/// The strategy must accept the model and the world.
strategy_bounds bounds_of(const known_strategy& which, const model& m, uint32_t world_size, const cost_model& costs);

} // namespace ringmaster::training
