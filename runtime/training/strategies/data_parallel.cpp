// Data parallel (Li et al., PyTorch Distributed, 2020). Every rank has the whole model and its part of the global
// batch. It works on it at once, or, with --micro-batch, on one micro-batch after the other, and adds their gradients
// up; the gradient of a layer is summed over the ranks right after its (last) backward. Time: load + forward and
// backward of all micro-batches + L all_reduces + update. Memory: 3 weights a layer, and the activations of one
// micro-batch.
#include "runtime/training/strategies/data_parallel.hpp"

namespace ringmaster::training {

/// A rank, in phases: what a coroutine awaits lies in its frame, and a thousand ranks' frames should stay in the
/// caches. It is in no anonymous namespace, since it lies in the frame of one that others call.
class data_parallel_rank {
public:
  data_parallel_rank(rank& self, const model& m, data_parallel_plan plan)
    : self_(self), plan_(plan), mine_{self.index(), self.world_size()}, layers_(m.layers), weights_(m.layers),
      states_(m.layers), sums_(m.layers), inputs_(m.layers + 1) {}

  strategy load();
  strategy forward(range samples);
  strategy backward(bool is_last);
  strategy update();

private:
  using sum = data_parallel_plan::sum;

  rank& self_;
  data_parallel_plan plan_;
  shard mine_;
  uint32_t layers_;
  std::vector<weight> weights_;
  std::vector<optimizer_state> states_;
  std::vector<weight_gradient> sums_;
  std::vector<activation> inputs_;
};

strategy data_parallel_rank::load() {
  for (uint32_t l = 0; l < layers_; ++l)
    std::tie(weights_[l], states_[l]) = co_await self_.load_weights(l, plan_.shards_weights ? mine_ : shard{},
                                                                    plan_.shards_states ? mine_ : shard{});
}

strategy data_parallel_rank::forward(range samples) {
  inputs_[0] = co_await self_.input(samples);
  for (uint32_t l = 0; l < layers_; ++l) {
    weight whole;
    if (plan_.shards_weights)
      whole = co_await self_.all_gather(weights_[l]);
    inputs_[l + 1] = co_await self_.forward(inputs_[l], plan_.shards_weights ? whole : weights_[l]);
  }
}

strategy data_parallel_rank::backward(bool is_last) {
  auto by_output = co_await self_.loss(inputs_[layers_]);
  inputs_[layers_].drop();
  for (uint32_t l = layers_; l-- > 0;) {
    weight whole;
    if (plan_.shards_weights)
      whole = co_await self_.all_gather(weights_[l]);
    weight_gradient gradient;
    std::tie(gradient, by_output) = co_await self_.backward(inputs_[l], plan_.shards_weights ? whole : weights_[l],
                                                            by_output);
    inputs_[l].drop();
    whole.drop();
    if (plan_.summed == sum::behind_each_backward)
      gradient = co_await self_.reduce_scatter(std::move(gradient));
    if (sums_[l].valid() || plan_.adds_first)
      co_await self_.add(sums_[l], std::move(gradient));
    else
      sums_[l] = std::move(gradient);
    if (plan_.summed == sum::behind_last_backward && is_last)
      sums_[l] = co_await self_.all_reduce(std::move(sums_[l]));
  }
}

strategy data_parallel_rank::update() {
  const bool regathers = plan_.shards_states && !plan_.shards_weights;
  for (uint32_t l = 0; l < layers_; ++l) {
    if (plan_.summed == sum::in_the_end && plan_.scatters)
      sums_[l] = co_await self_.reduce_scatter(std::move(sums_[l]));
    else if (plan_.summed == sum::in_the_end)
      sums_[l] = co_await self_.all_reduce(std::move(sums_[l]));
    if (plan_.shards_states && !plan_.scatters)
      sums_[l] = co_await self_.slice(std::move(sums_[l]), mine_);
    if (regathers)
      weights_[l] = co_await self_.slice(std::move(weights_[l]), mine_);
    co_await self_.update(weights_[l], states_[l], std::move(sums_[l]));
    if (regathers)
      weights_[l] = co_await self_.all_gather(weights_[l]);
    else
      co_await self_.finish(std::move(weights_[l]));
  }
  for (uint32_t l = 0; l < layers_ && regathers; ++l)
    co_await self_.finish(std::move(weights_[l]));
}

strategy run_data_parallel(rank& self, const model& m, data_parallel_plan plan) {
  data_parallel_rank mine{self, m, plan};
  co_await mine.load();
  const auto part = samples_of(m, self.index(), self.world_size());
  for (auto samples : micro_batches(m, part)) {
    co_await mine.forward(samples);
    co_await mine.backward(samples.end == part.end);
  }
  co_await mine.update();
}

const known_strategy data_parallel{
  .name = "ddp",
  .what = "data parallel: the whole model on every rank, gradients summed layer by layer",
  .run = [](rank& self, const model& m) { return run_data_parallel(self, m, {}); },
  .check = check_data_parallel,
  .cut = batch_cut::when_told,
  .of_another = true};

} // namespace ringmaster::training
