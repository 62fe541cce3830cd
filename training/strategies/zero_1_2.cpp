// ZeRO stages 1 and 2 (Rajbhandari et al. 2020): every rank has the whole weights, and 1/W of the optimizer states. A
// gradient is summed and scattered, the rank updates its shard of the weight, and the shards are gathered again.
// Stage 1 adds whole gradients up until the end, stage 2 scatters each micro-batch's right after its backward and keeps
// 1/W.
// Time: that of data parallel, with L reduce_scatters (stage 2: for each micro-batch) and L all_gathers for its L
// all_reduces, and 1/W of the update.
// Memory: 2 + 1/W weights a layer, or 1 + 2/W; and the activations of one micro-batch: of all samples without
// --micro-batch.
#include "training/strategies/data_parallel.hpp"

namespace ringmaster::training {

using sum = data_parallel_plan::sum;

const known_strategy zero_1{
  .name = "zero1",
  .what = "ZeRO stage 1: optimizer states sharded",
  .run =
    [](rank& self, const model& m) {
      return run_data_parallel(self, m, {.summed = sum::in_the_end, .shards_states = true, .scatters = true});
    },
  .check = check_data_parallel,
  .cut = batch_cut::when_requested,
  .gathers = sharded::the_model,
  .keeps_sums = true};
const known_strategy zero_2{
  .name = "zero2",
  .what = "ZeRO stage 2: optimizer states and gradients sharded",
  .run =
    [](rank& self, const model& m) {
      return run_data_parallel(self, m, {.summed = sum::after_each_backward, .shards_states = true, .scatters = true});
    },
  .check = check_data_parallel,
  .cut = batch_cut::when_requested,
  .gathers = sharded::the_model};

} // namespace ringmaster::training
