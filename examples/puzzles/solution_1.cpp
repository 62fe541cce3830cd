// Puzzle 1: gradient accumulation. Time: that of standard training. Memory: 3 weights a layer, and activations of
// one micro-batch only.
#include <ringmaster/strategy.hpp>

namespace ringmaster::training {

strategy solution_1(rank& self, const model& m) {
  std::vector<weight> weights(m.layers);
  std::vector<optimizer_state> states(m.layers);
  std::vector<weight_gradient> sums(m.layers);
  std::vector<activation> inputs(m.layers + 1);
  for (uint32_t l = 0; l < m.layers; ++l)
    std::tie(weights[l], states[l]) = co_await self.load_weights(l);

  for (auto samples : micro_batches(m, {0, m.global_batch})) {
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
    co_await self.update(weights[l], states[l], std::move(sums[l]));
    co_await self.finish(std::move(weights[l]));
  }
}

} // namespace ringmaster::training
