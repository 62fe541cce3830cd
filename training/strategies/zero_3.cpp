// ZeRO stage 3 (Rajbhandari et al. 2020), or fully sharded data parallel: weights, gradients and optimizer states are
// all sharded over the ranks. A layer's weight is gathered when it is needed and dropped at once; its gradient is
// summed and scattered right after its backward. So each micro-batch gathers every layer twice and scatters it once.
// Time: load / W + forward and backward + for each micro-batch 2 L all_gathers and L reduce_scatters + update / W.
// Memory: 3/W weights a layer, one whole weight and gradient, and the activations of one micro-batch: of all samples
// without --micro-batch.
#include "training/strategies/data_parallel.hpp"

namespace ringmaster::training {

const known_strategy zero_3{.name = "zero3",
                            .what = "ZeRO stage 3 (FSDP): weights, gradients and optimizer states sharded",
                            .run =
                              [](rank& self, const model& m) {
                                return run_data_parallel(self, m,
                                                         {.summed = data_parallel_plan::sum::after_each_backward,
                                                          .shards_weights = true,
                                                          .shards_states = true,
                                                          .scatters = true});
                              },
                            .check = check_data_parallel,
                            .cut = batch_cut::when_requested,
                            .gathers = sharded::the_model};

} // namespace ringmaster::training
