// Puzzle 0: standard training. Time: forward and backward of all layers and samples, and the updates. Memory: 2
// weights a layer, a gradient a layer, and activations of all samples, which are the most when the loss is taken.
#include <ringmaster/strategy.hpp>

namespace ringmaster::training {

strategy solution_0(rank& self, const model& m) {
  std::vector<weight> weights(m.layers);
  std::vector<optimizer_state> states(m.layers);
  std::vector<weight_gradient> gradients(m.layers);
  std::vector<activation> inputs(m.layers + 1);
  for (uint32_t l = 0; l < m.layers; ++l)
    std::tie(weights[l], states[l]) = co_await self.load_weights(l);

  inputs[0] = co_await self.input({0, m.global_batch});
  for (uint32_t l = 0; l < m.layers; ++l)
    inputs[l + 1] = co_await self.forward(inputs[l], weights[l]);

  auto by_output = co_await self.loss(inputs[m.layers]);
  inputs[m.layers].drop();
  for (uint32_t l = m.layers; l-- > 0;) {
    std::tie(gradients[l], by_output) = co_await self.backward(inputs[l], weights[l], by_output);
    inputs[l].drop();
  }
  by_output.drop();

  for (uint32_t l = 0; l < m.layers; ++l) {
    co_await self.update(weights[l], states[l], std::move(gradients[l]));
    co_await self.finish(std::move(weights[l]));
  }
}

} // namespace ringmaster::training
