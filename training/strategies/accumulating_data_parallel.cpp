// Data parallel with gradient accumulation: what ddp does with micro-batches, but that the sums of its gradients are
// reduced one after the other in the end, when a layer is updated, and that a micro-batch has one sample by default.
// Time: load + forward and backward of all micro-batches + L all_reduces + update. Memory: 3 weights a layer, and
// the activations of one micro-batch only.
#include "training/strategies/data_parallel.hpp"

namespace ringmaster::training {

const known_strategy accumulating_data_parallel{
  .name = "ddp-accumulate",
  .what = "data parallel, micro-batch after micro-batch; gradients summed over the ranks once",
  .run =
    [](rank& self, const model& m) {
      return run_data_parallel(self, m, {.summed = data_parallel_plan::sum::in_the_end, .adds_first = true});
    },
  .check = check_data_parallel,
  .plain = true,
  .keeps_sums = true};

} // namespace ringmaster::training
