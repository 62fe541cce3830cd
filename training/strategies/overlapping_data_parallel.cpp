// Data parallel with overlap (Li et al., PyTorch Distributed, 2020): a rank works on its part micro-batch after
// micro-batch; in the last one's backward, as soon as a bucket of layers has ended, their gradients are reduced on a
// second stream while the backward goes on. A bucket is --chunks layers.
// Time: load + forward and backward of all micro-batches + what the last backward does not hide of L all_reduces +
// update.
// Memory: 3 weights a layer, and the activations of one micro-batch.
#include "training/strategies/overlapped_sums.hpp"

namespace ringmaster::training {

namespace {

strategy run_overlapping_data_parallel(rank& self, const model& m) {
  std::vector<weight> weights(m.layers);
  std::vector<optimizer_state> states(m.layers);
  for (uint32_t l = 0; l < m.layers; ++l)
    std::tie(weights[l], states[l]) = co_await self.load_weights(l);

  overlapped_sums sums{self, m, false};
  co_await sums.run_micro_batches(weights);
  for (uint32_t l = m.layers; l-- > 0;) {
    auto sum = co_await sums.take(l);
    co_await self.update(weights[l], states[l], std::move(sum));
    co_await self.finish(std::move(weights[l]));
  }
}

} // namespace

const known_strategy overlapping_data_parallel{
  .name = "ddp-overlap",
  .what = "ddp-accumulate whose sums are reduced beside the last backward, --chunks layers at once",
  .run = run_overlapping_data_parallel,
  .check = check_data_parallel,
  .chunks = chunk_use::buckets,
  .hides_sums = true,
  .keeps_sums = true};

} // namespace ringmaster::training
