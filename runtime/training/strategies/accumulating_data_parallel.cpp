// Data parallel with gradient accumulation: a rank works on its part of the global batch one micro-batch after the
// other, and the sums of its gradients are reduced once, in the end.
// Time: load + forward and backward of all micro-batches + L all_reduces + update. Memory: 3 weights a layer, and
// the activations of one micro-batch only.
#include "runtime/training/strategies/strategies.hpp"

namespace ringmaster::training {

namespace {

strategy run(rank& self, const model& m) {
  std::vector<weight> weights(m.layers);
  std::vector<optimizer_state> states(m.layers);
  std::vector<weight_gradient> sums(m.layers);
  std::vector<activation> inputs(m.layers + 1);
  for (uint32_t l = 0; l < m.layers; ++l)
    std::tie(weights[l], states[l]) = co_await self.load_weights(l);

  for (auto samples : micro_batches(m, samples_of(m, self.index(), self.world_size()))) {
    inputs[0] = co_await self.input(samples);
    for (uint32_t l = 0; l < m.layers; ++l)
      inputs[l + 1] = co_await self.forward(inputs[l], weights[l]);
    auto by_output = co_await self.loss(inputs[m.layers]);
    inputs[m.layers].drop();
    for (uint32_t l = m.layers; l-- > 0;) {
      weight_gradient gradient;
      std::tie(gradient, by_output) = co_await self.backward(inputs[l], weights[l], by_output);
      inputs[l].drop();
      co_await self.add(sums[l], std::move(gradient));
    }
  }

  for (uint32_t l = 0; l < m.layers; ++l) {
    sums[l] = co_await self.all_reduce(std::move(sums[l]));
    co_await self.update(weights[l], states[l], std::move(sums[l]));
    co_await self.finish(std::move(weights[l]));
  }
}

} // namespace

const known_strategy accumulating_data_parallel{
  "ddp-accumulate", "data parallel, micro-batch after micro-batch; gradients summed over the ranks once", run,
  check_data_parallel};

} // namespace ringmaster::training
