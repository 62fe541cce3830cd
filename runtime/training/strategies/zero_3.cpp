// ZeRO stage 3 (Rajbhandari et al. 2020), or fully sharded data parallel: weights, gradients and optimizer states are
// all sharded over the ranks. A layer's weight is gathered when it is needed and dropped at once; its gradient is
// summed and scattered right after its backward.
// Time: load / W + forward + backward + 2 L all_gathers + L reduce_scatters + update / W.
// Memory: 3/W weights a layer, one whole weight and gradient, and activations.
#include "runtime/training/strategies/strategies.hpp"

namespace ringmaster::training {

namespace {

strategy run(rank& self, const model& m) {
  std::vector<weight> shards(m.layers);
  std::vector<optimizer_state> states(m.layers);
  std::vector<weight_gradient> gradients(m.layers);
  std::vector<activation> inputs(m.layers + 1);
  for (uint32_t l = 0; l < m.layers; ++l)
    std::tie(shards[l], states[l]) = co_await self.load_weights(l, {self.index(), self.world_size()});

  inputs[0] = co_await self.input(samples_of(m, self.index(), self.world_size()));
  for (uint32_t l = 0; l < m.layers; ++l) {
    auto whole = co_await self.all_gather(shards[l]);
    inputs[l + 1] = co_await self.forward(inputs[l], whole);
  }

  auto by_output = co_await self.loss(inputs[m.layers]);
  inputs[m.layers].drop();
  for (uint32_t l = m.layers; l-- > 0;) {
    auto whole = co_await self.all_gather(shards[l]);
    std::tie(gradients[l], by_output) = co_await self.backward(inputs[l], whole, by_output);
    inputs[l].drop();
    whole.drop();
    gradients[l] = co_await self.reduce_scatter(std::move(gradients[l]));
  }
  by_output.drop();

  for (uint32_t l = 0; l < m.layers; ++l) {
    co_await self.update(shards[l], states[l], std::move(gradients[l]));
    co_await self.finish(std::move(shards[l]));
  }
}

} // namespace

const known_strategy zero_3{"zero3",
                            "ZeRO stage 3 (FSDP): weights, gradients and optimizer states sharded",
                            run,
                            check_data_parallel,
                            data_parallel_shape,
                            false,
                            false};

} // namespace ringmaster::training
