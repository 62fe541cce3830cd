// Data parallel (Li et al., PyTorch Distributed, 2020). Every rank has the whole model and its part of the global
// batch, and works on it at once; the gradient of a layer is summed over the ranks right after its backward.
// Time: load + forward + backward + L all_reduces + update, each of all layers. Memory: 3 weights a layer, and
// activations.
#include "runtime/training/strategies/strategies.hpp"

namespace ringmaster::training {

namespace {

strategy run(rank& self, const model& m) {
  std::vector<weight> weights(m.layers);
  std::vector<optimizer_state> states(m.layers);
  std::vector<weight_gradient> gradients(m.layers);
  std::vector<activation> inputs(m.layers + 1);
  for (uint32_t l = 0; l < m.layers; ++l)
    std::tie(weights[l], states[l]) = co_await self.load_weights(l);

  inputs[0] = co_await self.input(samples_of(m, self.index(), self.world_size()));
  for (uint32_t l = 0; l < m.layers; ++l)
    inputs[l + 1] = co_await self.forward(inputs[l], weights[l]);

  auto by_output = co_await self.loss(inputs[m.layers]);
  inputs[m.layers].drop();
  for (uint32_t l = m.layers; l-- > 0;) {
    std::tie(gradients[l], by_output) = co_await self.backward(inputs[l], weights[l], by_output);
    inputs[l].drop();
    gradients[l] = co_await self.all_reduce(std::move(gradients[l]));
  }
  by_output.drop();

  for (uint32_t l = 0; l < m.layers; ++l) {
    co_await self.update(weights[l], states[l], std::move(gradients[l]));
    co_await self.finish(std::move(weights[l]));
  }
}

} // namespace

const known_strategy data_parallel{"ddp",
                                   "data parallel: the whole model on every rank, gradients summed layer by layer",
                                   run,
                                   check_data_parallel,
                                   data_parallel_shape,
                                   false,
                                   false};

} // namespace ringmaster::training
