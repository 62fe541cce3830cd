// Weight-sharded data parallel: each rank keeps 1/W of every layer's weight and optimizer state, and gathers a layer
// when it needs it. Its gradients are whole until they are summed, once, in the end.
// Time: that of data parallel + 2 L all_gathers for each micro-batch. Memory: 2/W weights a layer, L gradients, one
// whole weight, and the activations of one micro-batch: of all samples without --micro-batch.
#include "training/strategies/data_parallel.hpp"

namespace ringmaster::training {

const known_strategy weight_sharded{
  .name = "wsdp",
  .what = "data parallel with sharded weights: a layer is gathered when it is needed",
  .run =
    [](rank& self, const model& m) {
      return run_data_parallel(
        self, m, {.summed = data_parallel_plan::sum::in_the_end, .shards_weights = true, .shards_states = true});
    },
  .check = check_data_parallel,
  .cut = batch_cut::when_requested,
  .gathers = sharded::the_model};

} // namespace ringmaster::training
