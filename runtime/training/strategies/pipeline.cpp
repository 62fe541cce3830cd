#include "runtime/training/strategies/pipeline.hpp"

namespace ringmaster::training {

namespace {

/// One stage of the model on one rank.
struct stage {
  bool first = false, last = false;
  uint32_t previous = 0, next = 0; ///< The ranks that have these.
  range layers;
  std::vector<weight> weights;
  std::vector<optimizer_state> states;
  std::vector<weight_gradient> sums;
  std::vector<std::vector<activation>> inputs;              ///< By micro-batch and layer; the last is the output.
  std::vector<std::vector<activation_gradient>> by_outputs; ///< The same; kept where the weight's gradient comes later.

  stage(const model& m, uint32_t number, uint32_t ranks, uint32_t stages, size_t micro_batches)
    : first(number == 0), last(number + 1 == stages), previous((number + ranks - 1) % ranks),
      next((number + 1) % ranks), layers(layers_of(m, number, stages)), weights(layers.count()), states(layers.count()),
      sums(layers.count()), inputs(micro_batches), by_outputs(micro_batches) {}
};

} // namespace

strategy run_pipeline(rank& self, const model& m, std::vector<range> micro_batches, std::vector<pipeline_step> order,
                      uint32_t chunks) {
  using kind = pipeline_step::kind;
  std::vector<stage> stages;
  for (uint32_t c = 0; c < chunks; ++c)
    stages.emplace_back(m, c * self.world_size() + self.index(), self.world_size(), chunks * self.world_size(),
                        micro_batches.size());
  for (auto& s : stages)
    for (uint64_t l = 0; l < s.layers.count(); ++l)
      std::tie(s.weights[l], s.states[l]) = co_await self.load_weights(static_cast<uint32_t>(s.layers.begin + l));

  for (auto step : order) {
    auto& s = stages[step.chunk];
    const auto layers = s.layers.count();
    auto& x = s.inputs[step.micro_batch];
    auto& g = s.by_outputs[step.micro_batch];
    if (step.what == kind::forward) {
      x.resize(layers + 1);
      if (s.first)
        x[0] = co_await self.input(micro_batches[step.micro_batch]);
      else
        x[0] = co_await self.receive<activation>(s.previous);
      for (uint64_t l = 0; l < layers; ++l)
        x[l + 1] = co_await self.forward(x[l], s.weights[l]);
      if (!s.last) {
        co_await self.send(s.next, x[layers]);
        x[layers].drop();
      }
      continue;
    }
    if (step.what == kind::backward_weight) {
      for (auto l = layers; l-- > 0;) {
        co_await self.add(s.sums[l], co_await self.backward_weight(x[l], s.weights[l], g[l + 1]));
        x[l].drop();
        g[l + 1].drop();
      }
      std::vector<activation>{}.swap(x);
      std::vector<activation_gradient>{}.swap(g);
      continue;
    }
    g.resize(layers + 1);
    if (s.last)
      g[layers] = co_await self.loss(x[layers]);
    else
      g[layers] = co_await self.receive<activation_gradient>(s.next);
    x[layers].drop();
    for (auto l = layers; l-- > 0;) {
      if (step.what == kind::backward_input) {
        g[l] = co_await self.backward_input(x[l], s.weights[l], g[l + 1]);
        continue;
      }
      weight_gradient gradient;
      std::tie(gradient, g[l]) = co_await self.backward(x[l], s.weights[l], g[l + 1]);
      x[l].drop();
      g[l + 1].drop();
      co_await self.add(s.sums[l], std::move(gradient));
    }
    if (!s.first)
      co_await self.send(s.previous, g[0]);
    g[0].drop();
    if (step.what == kind::backward) {
      std::vector<activation>{}.swap(x);
      std::vector<activation_gradient>{}.swap(g);
    }
  }

  for (auto& s : stages)
    for (uint64_t l = 0; l < s.layers.count(); ++l) {
      co_await self.update(s.weights[l], s.states[l], std::move(s.sums[l]));
      co_await self.finish(std::move(s.weights[l]));
    }
}

} // namespace ringmaster::training
