// Data parallel (Li et al., PyTorch Distributed, 2020). Every rank has the whole model and its part of the global batch.
// It works on it at once, or, with --micro-batch, on one micro-batch after the other, and adds their gradients up; the
// gradient of a layer is summed over the ranks right after its (last) backward.
// Time: load + forward and backward of all micro-batches + L all_reduces + update. Memory: 3 weights a layer, and the
// activations of one micro-batch.
#include "runtime/training/strategies/data_parallel.hpp"

namespace ringmaster::training {

strategy run_data_parallel(rank& self, const model& m, data_parallel_plan plan) {
  using sum = data_parallel_plan::sum;
  const shard mine{self.index(), self.world_size()};
  const bool regathers = plan.shards_states && !plan.shards_weights;
  std::vector<weight> weights(m.layers);
  std::vector<optimizer_state> states(m.layers);
  std::vector<weight_gradient> sums(m.layers);
  std::vector<activation> inputs(m.layers + 1);
  for (uint32_t l = 0; l < m.layers; ++l)
    std::tie(weights[l], states[l]) = co_await self.load_weights(l, plan.shards_weights ? mine : shard{},
                                                                 plan.shards_states ? mine : shard{});

  const auto part = samples_of(m, self.index(), self.world_size());
  for (auto samples : micro_batches(m, part)) {
    inputs[0] = co_await self.input(samples);
    for (uint32_t l = 0; l < m.layers; ++l) {
      weight whole;
      if (plan.shards_weights)
        whole = co_await self.all_gather(weights[l]);
      inputs[l + 1] = co_await self.forward(inputs[l], plan.shards_weights ? whole : weights[l]);
    }
    auto by_output = co_await self.loss(inputs[m.layers]);
    inputs[m.layers].drop();
    for (uint32_t l = m.layers; l-- > 0;) {
      weight whole;
      if (plan.shards_weights)
        whole = co_await self.all_gather(weights[l]);
      weight_gradient gradient;
      std::tie(gradient, by_output) = co_await self.backward(inputs[l], plan.shards_weights ? whole : weights[l],
                                                             by_output);
      inputs[l].drop();
      whole.drop();
      if (plan.summed == sum::behind_each_backward)
        gradient = co_await self.reduce_scatter(std::move(gradient));
      if (sums[l].valid() || plan.adds_first)
        co_await self.add(sums[l], std::move(gradient));
      else
        sums[l] = std::move(gradient);
      if (plan.summed == sum::behind_last_backward && samples.end == part.end)
        sums[l] = co_await self.all_reduce(std::move(sums[l]));
    }
  }

  for (uint32_t l = 0; l < m.layers; ++l) {
    if (plan.summed == sum::in_the_end && plan.scatters)
      sums[l] = co_await self.reduce_scatter(std::move(sums[l]));
    else if (plan.summed == sum::in_the_end)
      sums[l] = co_await self.all_reduce(std::move(sums[l]));
    if (plan.shards_states && !plan.scatters)
      sums[l] = co_await self.slice(std::move(sums[l]), mine);
    if (regathers)
      weights[l] = co_await self.slice(std::move(weights[l]), mine);
    co_await self.update(weights[l], states[l], std::move(sums[l]));
    if (regathers)
      weights[l] = co_await self.all_gather(weights[l]);
    else
      co_await self.finish(std::move(weights[l]));
  }
  for (auto& w : weights)
    if (regathers)
      co_await self.finish(std::move(w));
}

const known_strategy data_parallel{
  .name = "ddp",
  .what = "data parallel: the whole model on every rank, gradients summed layer by layer",
  .run = [](rank& self, const model& m) { return run_data_parallel(self, m, {}); },
  .check = check_data_parallel,
  .cut = batch_cut::when_told,
  .of_another = true};

} // namespace ringmaster::training
