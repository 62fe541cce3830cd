#include "runtime/training/strategies/pipeline_stage.hpp"

namespace ringmaster::training {

strategy run_stage(rank& self, const model& m, std::vector<range> micro_batches, std::vector<pipeline_step> order) {
  const auto mine = layers_of(m, self.index(), self.world_size());
  const auto layers = mine.count();
  std::vector<weight> weights(layers);
  std::vector<optimizer_state> states(layers);
  std::vector<weight_gradient> sums(layers);
  std::vector<std::vector<activation>> inputs(micro_batches.size());
  for (uint64_t l = 0; l < layers; ++l)
    std::tie(weights[l], states[l]) = co_await self.load_weights(static_cast<uint32_t>(mine.begin + l));

  for (auto step : order) {
    auto& x = inputs[step.micro_batch];
    if (step.forward) {
      x.resize(layers + 1);
      if (self.first())
        x[0] = co_await self.input(micro_batches[step.micro_batch]);
      else
        x[0] = co_await self.receive<activation>(self.previous());
      for (uint64_t l = 0; l < layers; ++l)
        x[l + 1] = co_await self.forward(x[l], weights[l]);
      if (self.last())
        continue;
      co_await self.send(self.next(), x[layers]);
      x[layers].drop();
    } else {
      activation_gradient by_output;
      if (self.last())
        by_output = co_await self.loss(x[layers]);
      else
        by_output = co_await self.receive<activation_gradient>(self.next());
      x[layers].drop();
      for (auto l = layers; l-- > 0;) {
        weight_gradient gradient;
        std::tie(gradient, by_output) = co_await self.backward(x[l], weights[l], by_output);
        x[l].drop();
        co_await self.add(sums[l], std::move(gradient));
      }
      if (!self.first())
        co_await self.send(self.previous(), by_output);
    }
  }

  for (uint64_t l = 0; l < layers; ++l) {
    co_await self.update(weights[l], states[l], std::move(sums[l]));
    co_await self.finish(std::move(weights[l]));
  }
}

} // namespace ringmaster::training
