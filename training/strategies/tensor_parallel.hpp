#pragma once

#include "training/strategies/strategies.hpp"

namespace ringmaster::training {

// A world of groups that share each layer, and are data parallel to each other: m.parallel.tp ranks each, or, if that
// is not given, world size / m.data.

mesh tensor_parallel_shape(const model& m, uint32_t world_size);
caf::error check_tensor_parallel(const model& m, uint32_t world_size);

/// A rank whose group shares the model, fully sharded. `replicas`: the ranks of other groups that have the same shard,
/// over which the sums go on; one rank: there are none.
strategy run_fully_sharded(rank& self, const model& m, group sharers, group replicas);

} // namespace ringmaster::training
