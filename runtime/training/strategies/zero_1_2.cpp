// ZeRO stages 1 and 2 (Rajbhandari et al. 2020): every rank has the whole weights, and 1/W of the optimizer states. A
// gradient is summed and scattered, the rank updates its shard of the weight, and the shards are gathered again.
// Stage 1 keeps whole gradients until the end, stage 2 scatters each right after its backward and keeps 1/W.
// Time: that of data parallel, with L reduce_scatters and L all_gathers for its L all_reduces, and 1/W of the update.
// Memory: 2 + 1/W weights a layer, or 1 + 2/W; and activations.
#include "runtime/training/strategies/strategies.hpp"

namespace ringmaster::training {

namespace {

strategy run(rank& self, const model& m, bool scatters_at_once) {
  const shard mine{self.index(), self.world_size()};
  std::vector<weight> weights(m.layers);
  std::vector<optimizer_state> states(m.layers);
  std::vector<weight_gradient> gradients(m.layers);
  std::vector<activation> inputs(m.layers + 1);
  for (uint32_t l = 0; l < m.layers; ++l)
    std::tie(weights[l], states[l]) = co_await self.load_weights(l, {}, mine);

  inputs[0] = co_await self.input(samples_of(m, self.index(), self.world_size()));
  for (uint32_t l = 0; l < m.layers; ++l)
    inputs[l + 1] = co_await self.forward(inputs[l], weights[l]);

  auto by_output = co_await self.loss(inputs[m.layers]);
  inputs[m.layers].drop();
  for (uint32_t l = m.layers; l-- > 0;) {
    std::tie(gradients[l], by_output) = co_await self.backward(inputs[l], weights[l], by_output);
    inputs[l].drop();
    if (scatters_at_once)
      gradients[l] = co_await self.reduce_scatter(std::move(gradients[l]));
  }
  by_output.drop();

  for (uint32_t l = 0; l < m.layers; ++l) {
    if (!scatters_at_once)
      gradients[l] = co_await self.reduce_scatter(std::move(gradients[l]));
    auto part = co_await self.slice(std::move(weights[l]), mine);
    co_await self.update(part, states[l], std::move(gradients[l]));
    weights[l] = co_await self.all_gather(part);
  }
  for (auto& w : weights)
    co_await self.finish(std::move(w));
}

} // namespace

const known_strategy zero_1{"zero1",
                            "ZeRO stage 1: optimizer states sharded",
                            [](rank& self, const model& m) { return run(self, m, false); },
                            check_data_parallel,
                            data_parallel_shape,
                            false,
                            false};
const known_strategy zero_2{"zero2",
                            "ZeRO stage 2: optimizer states and gradients sharded",
                            [](rank& self, const model& m) { return run(self, m, true); },
                            check_data_parallel,
                            data_parallel_shape,
                            false,
                            false};

} // namespace ringmaster::training
