// Data parallel with overlap (Li et al., PyTorch Distributed, 2020): a rank works on its part micro-batch after
// micro-batch; in the last one's backward, as soon as a bucket of layers has ended, their gradients are reduced on a
// second stream while the backward goes on. A bucket is --chunks layers.
// Time: load + forward and backward of all micro-batches + what the last backward does not hide of L all_reduces +
// update.
// Memory: 3 weights a layer, and the activations of one micro-batch.
#include "training/strategies/strategies.hpp"

namespace ringmaster::training {

namespace {

strategy run_overlapping_data_parallel(rank& self, const model& m) {
  std::vector<weight> weights(m.layers);
  std::vector<optimizer_state> states(m.layers);
  std::vector<weight_gradient> sums(m.layers);
  std::vector<handle<weight_gradient>> reduced(m.layers);
  std::vector<activation> inputs(m.layers + 1);
  for (uint32_t l = 0; l < m.layers; ++l)
    std::tie(weights[l], states[l]) = co_await self.load_weights(l);

  const auto batches = micro_batches(m, self.index(), self.world_size());
  for (auto samples : batches) {
    inputs[0] = co_await self.input(samples);
    for (uint32_t l = 0; l < m.layers; ++l)
      inputs[l + 1] = co_await self.forward(inputs[l], weights[l]);
    auto by_output = co_await self.loss(inputs[m.layers]);
    inputs[m.layers].drop();
    auto bucket_end = m.layers;
    for (uint32_t l = m.layers; l-- > 0;) {
      weight_gradient gradient;
      std::tie(gradient, by_output) = co_await self.backward(inputs[l], weights[l], by_output);
      inputs[l].drop();
      co_await self.add(sums[l], std::move(gradient));
      if (samples != batches.back() || (bucket_end - l < m.parallel.chunks && l > 0))
        continue;
      while (bucket_end > l) {
        --bucket_end;
        reduced[bucket_end] = self.aside(self.all_reduce(std::move(sums[bucket_end])));
      }
    }
  }

  for (uint32_t l = m.layers; l-- > 0;) {
    auto sum = co_await std::move(reduced[l]);
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
