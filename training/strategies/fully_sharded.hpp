#pragma once

#include "training/strategies/strategies.hpp"

namespace ringmaster::training {

/// A rank whose group shares the model, fully sharded. `replicas`: the ranks of other groups that have the same shard,
/// over which the sums go on; one rank: there are none.
strategy run_fully_sharded(rank& self, const model& m, group sharers, group replicas);

} // namespace ringmaster::training
