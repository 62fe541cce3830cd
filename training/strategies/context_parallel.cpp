// Context parallel: --context neighbours share the positions of their samples, of which each has 1/C, and attention
// needs the keys and values of all of them. Each rank has the first part of one half of the positions and the last of
// the other, parts r and 2C-1-r of 2C, so that causal attention of any rank's positions to any rank's keys is as much
// as of any other's.
// context: ring attention (Liu et al. 2023). A rank's keys go around its neighbours, a hop beside the attention to the
// ones at hand; in the backward they go around again, and the gradients by them follow and return to their rank.
// context-gather: as Llama 3 (2024) and Megatron-LM have it: a rank gathers all keys before attention, and the
// gradients by them are summed and scattered after its backward.
// All ranks have the whole weights, each finds gradients by its positions of its samples, and they are summed at once.
// Time: 1/C of forward and backward, and attention; in a ring what it does not hide of 3 C - 2 hops a layer and
// micro-batch, else 2 all_gathers and a reduce_scatter; L all_reduces in the end.
// Memory: 3 weights a layer; 1/C of the activations of one micro-batch, and its own keys, of each layer; while a layer
// is computed two more of these, or all keys.
#include "training/strategies/key_exchange.hpp"
#include "training/strategies/strategies.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

namespace ringmaster::training {

namespace {

/// What a rank keeps of a layer for its backward.
struct kept_layer {
  weight w;
  optimizer_state state;
  weight_gradient sum;
  activation input;
  attention_keys keys;
};

mesh context_shape(const model& m, uint32_t world_size) {
  const auto context = m.parallel.cp != 0 ? m.parallel.cp : world_size / std::max(m.parallel.dp, 1u);
  return {.data = world_size / std::max(context, 1u), .context = context};
}

strategy run_context_parallel(rank& self, const model& m, bool rings) {
  const auto shape = context_shape(m, self.world_size());
  const auto sharers = shape.context_group(self.index());
  const shard mine{sharers.index_of(self.index()), sharers.count};
  key_exchange others{self, sharers, rings};
  std::vector<kept_layer> layers(m.layers);
  for (uint32_t l = 0; l < m.layers; ++l)
    std::tie(layers[l].w, layers[l].state) = co_await self.load_weights(l);

  for (auto samples : micro_batches(m, shape.data_index(self.index()), shape.data)) {
    auto x = co_await self.slice(co_await self.input(samples), mine);
    for (auto& layer : layers) {
      layer.input = std::move(x);
      layer.keys = co_await self.keys(layer.input, layer.w);
      auto made = co_await others.attend(layer.input, layer.keys);
      x = co_await self.forward(layer.input, layer.w, std::move(made));
    }
    auto by_output = co_await self.loss(x);
    x.drop();
    for (auto l = layers.size(); l-- > 0;) {
      auto& layer = layers[l];
      auto by_keys = co_await others.attend_backward(layer.input, layer.keys, by_output);
      layer.keys.drop();
      weight_gradient gradient;
      std::tie(gradient, by_output) = co_await self.backward(layer.input, layer.w, by_output, std::move(by_keys));
      layer.input.drop();
      co_await self.add(layer.sum, std::move(gradient));
    }
  }

  for (auto& layer : layers) {
    auto sum = co_await self.all_reduce(std::move(layer.sum));
    co_await self.update(layer.w, layer.state, std::move(sum));
    co_await self.finish(std::move(layer.w));
  }
}

caf::error check_context_parallel(const model& m, uint32_t world_size) {
  if (m.for_real)
    return invalid("ranks that share positions need layers of attention that can work on some of them; those that "
                   "are trained here take whole samples: ringmaster simulate train simulates it");
  const auto shape = context_shape(m, world_size);
  if (shape.size() != world_size || (m.parallel.dp != 0 && m.parallel.dp != shape.data))
    return invalid(fmt::format("{} ranks that share positions times {} data-parallel ones are not {} ranks",
                               shape.context, m.parallel.dp != 0 ? m.parallel.dp : shape.data, world_size));
  if (shape.context > position_run::of_max)
    return invalid(fmt::format("{} ranks that share positions are more than {}", shape.context, position_run::of_max));
  return check_data_parallel(m, shape.data);
}

} // namespace

const known_strategy context_parallel{
  .name = "context",
  .what = "context parallel: --context ranks share the positions, keys go around in a ring beside attention",
  .run = [](rank& self, const model& m) { return run_context_parallel(self, m, true); },
  .check = check_context_parallel,
  .shape = context_shape,
  .needs = beyond::positions,
  .keeps_sums = true};
const known_strategy gathering_context_parallel{
  .name = "context-gather",
  .what = "the same, where each rank gathers all keys before attention",
  .run = [](rank& self, const model& m) { return run_context_parallel(self, m, false); },
  .check = check_context_parallel,
  .shape = context_shape,
  .needs = beyond::positions,
  .keeps_sums = true};

} // namespace ringmaster::training
