// Weight-sharded data parallel: each rank keeps 1/W of every layer's weight and optimizer state, and gathers a layer
// when it needs it. Its gradients are whole until they are summed.
// Time: that of data parallel + 2 L all_gathers. Memory: 2/W weights a layer, L gradients, one whole weight, and
// activations.
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
  }
  by_output.drop();

  for (uint32_t l = 0; l < m.layers; ++l) {
    auto sum = co_await self.all_reduce(std::move(gradients[l]));
    auto mine = co_await self.slice(std::move(sum), {self.index(), self.world_size()});
    co_await self.update(shards[l], states[l], std::move(mine));
    co_await self.finish(std::move(shards[l]));
  }
}

} // namespace

const known_strategy weight_sharded{"wsdp",
                                    "data parallel with sharded weights: a layer is gathered when it is needed",
                                    run,
                                    check_data_parallel,
                                    data_parallel_shape,
                                    false,
                                    false};

} // namespace ringmaster::training
