// Data parallel (Li et al., PyTorch Distributed, 2020). Every rank has the whole model and its part of the global
// batch. It works on it at once, or, with --micro-batch, on one micro-batch after the other, and adds their gradients
// up; the gradient of a layer is summed over the ranks right after its (last) backward. Time: load + forward and
// backward of all micro-batches + L all_reduces + update. Memory: 3 weights a layer, and the activations of one
// micro-batch.
#include "training/strategies/data_parallel.hpp"

#include <ranges>

namespace ringmaster::training {

/// What a rank has of a layer while samples go through it. It lies together, each value in a cache line of its own: a
/// thousand ranks' layers are more than the caches take.
struct alignas(64) data_parallel_layer {
  weight w;
  activation input;
  weight_gradient sum;
};

/// A rank, in phases: what a coroutine awaits lies in its frame, and a thousand ranks' frames should stay in the
/// caches. It is in no anonymous namespace, since it lies in the frame of one that others call.
class data_parallel_rank {
public:
  data_parallel_rank(rank& self, const model& m, data_parallel_plan plan)
    : self_(self), plan_(plan), mine_{self.index(), self.world_size()}, layers_(m.layers), states_(m.layers) {}

  strategy load();
  strategy forward(range samples);
  strategy backward(bool is_last);
  strategy update();

private:
  using sum = data_parallel_plan::sum;

  /// Of a layer; after the last one it is the model's output.
  activation& input(size_t l) { return l < layers_.size() ? layers_[l].input : output_; }

  rank& self_;
  data_parallel_plan plan_;
  shard mine_;
  std::vector<data_parallel_layer> layers_;
  std::vector<optimizer_state> states_; ///< Of the layers: only their load and update need them.
  activation output_;                   ///< Until the loss.
};

strategy data_parallel_rank::load() {
  for (uint32_t l = 0; l < layers_.size(); ++l)
    std::tie(layers_[l].w, states_[l]) = co_await self_.load_weights(l, plan_.shards_weights ? mine_ : shard{},
                                                                     plan_.shards_states ? mine_ : shard{});
}

strategy data_parallel_rank::forward(range samples) {
  weight whole;
  input(0) = co_await self_.input(samples);
  for (size_t l = 0; l < layers_.size(); ++l) {
    if (plan_.shards_weights)
      whole = co_await self_.all_gather(layers_[l].w);
    input(l + 1) = co_await self_.forward(input(l), plan_.shards_weights ? whole : layers_[l].w);
    whole.drop();
  }
}

strategy data_parallel_rank::backward(bool is_last) {
  auto by_output = co_await self_.loss(output_);
  output_.drop();
  weight whole;
  weight_gradient more; // of a micro-batch after the first, whose gradient is made where the sum is to be
  for (auto& layer : std::views::reverse(layers_)) {
    if (plan_.shards_weights)
      whole = co_await self_.all_gather(layer.w);
    const bool adds = layer.sum.valid() || plan_.adds_first;
    auto& gradient = adds ? more : layer.sum;
    std::tie(gradient, by_output) = co_await self_.backward(layer.input, plan_.shards_weights ? whole : layer.w,
                                                            by_output);
    layer.input.drop();
    whole.drop();
    if (plan_.summed == sum::after_each_backward)
      gradient = co_await self_.reduce_scatter(std::move(gradient));
    if (adds)
      co_await self_.add(layer.sum, std::move(more));
    if (plan_.summed == sum::after_last_backward && is_last)
      layer.sum = co_await self_.all_reduce(std::move(layer.sum));
  }
}

strategy data_parallel_rank::update() {
  const bool regathers = plan_.shards_states && !plan_.shards_weights;
  for (size_t l = 0; l < layers_.size(); ++l) {
    auto& [w, input, gradient] = layers_[l];
    if (plan_.summed == sum::in_the_end && plan_.scatters)
      gradient = co_await self_.reduce_scatter(std::move(gradient));
    else if (plan_.summed == sum::in_the_end)
      gradient = co_await self_.all_reduce(std::move(gradient));
    if (plan_.shards_states && !plan_.scatters)
      gradient = co_await self_.slice(std::move(gradient), mine_);
    if (regathers)
      w = co_await self_.slice(std::move(w), mine_);
    co_await self_.update(w, states_[l], std::move(gradient));
    if (regathers)
      w = co_await self_.all_gather(w);
    else
      co_await self_.finish(std::move(w));
  }
  if (regathers)
    for (auto& layer : layers_)
      co_await self_.finish(std::move(layer.w));
}

strategy run_data_parallel(rank& self, const model& m, data_parallel_plan plan) {
  data_parallel_rank mine{self, m, plan};
  co_await mine.load();
  const auto batches = micro_batches(m, self.index(), self.world_size());
  for (auto samples : batches) {
    co_await mine.forward(samples);
    co_await mine.backward(samples == batches.back());
  }
  co_await mine.update();
}

const known_strategy data_parallel{
  .name = "ddp",
  .what = "data parallel: the whole model on every rank, gradients summed layer by layer",
  .run = [](rank& self, const model& m) { return run_data_parallel(self, m, {}); },
  .check = check_data_parallel,
  .cut = batch_cut::when_requested,
  .of_another = true,
  .keeps_sums = true};

} // namespace ringmaster::training
