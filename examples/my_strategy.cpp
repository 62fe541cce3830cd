// A training strategy of your own, simulated: data parallel whose ranks reduce every second layer's gradient during the
// backward, and the others at the end. docs/strategies.md has the operations. --svg FILE writes a picture, --trace FILE
// a trace for ui.perfetto.dev. build/release/examples/my_strategy prints
//
//   ddp          41.133 ms, peak 2818572288 elements
//   ddp-overlap  38.908 ms, peak 2818572288 elements
//   half_beside  40.957 ms, peak 2952790016 elements
#include <ringmaster/cluster.hpp>
#include <ringmaster/simulate.hpp>

#include <cstdio>
#include <fstream>

using namespace ringmaster;
using namespace ringmaster::training;

static strategy half_beside(rank& self, const model& m) {
  std::vector<weight> weights(m.layers);
  std::vector<optimizer_state> states(m.layers);
  std::vector<weight_gradient> gradients(m.layers);
  std::vector<handle<weight_gradient>> beside(m.layers);
  std::vector<activation> inputs(m.layers + 1);
  for (uint32_t l = 0; l < m.layers; ++l)
    std::tie(weights[l], states[l]) = co_await self.load_weights(l);
  inputs[0] = co_await self.input(samples_of(m, self.index(), self.world_size()));
  for (uint32_t l = 0; l < m.layers; ++l)
    inputs[l + 1] = co_await self.forward(inputs[l], weights[l]);
  auto by_output = co_await self.loss(inputs[m.layers]);
  for (uint32_t l = m.layers; l-- > 0;) {
    std::tie(gradients[l], by_output) = co_await self.backward(inputs[l], weights[l], by_output);
    inputs[l].drop();
    if (l % 2 == 1)
      beside[l] = self.aside(self.all_reduce(std::move(gradients[l])));
  }
  for (uint32_t l = 0; l < m.layers; ++l) {
    weight_gradient sum;
    if (beside[l].valid())
      sum = co_await std::move(beside[l]);
    else
      sum = co_await self.all_reduce(std::move(gradients[l]));
    co_await self.update(weights[l], states[l], std::move(sum));
    co_await self.finish(std::move(weights[l]));
  }
}

static void run(cluster*, const program_arguments& arguments) {
  register_strategy({"half_beside", "half of the sums beside the backward", half_beside}).value();
  for (const char* name : {"ddp", "ddp-overlap", "half_beside"}) {
    const model trained{.layers = 16, .global_batch = 256, .micro_batch = 32};
    const auto step = simulate_step(program_of(name).value(), trained, 8, step_costs::lab, true).value();
    std::printf("%-12s %.3f ms, peak %lu elements\n", name, 1e3 * step.time, step.peak_memory);
    for (auto& [option, file] : arguments.values) // the last strategy's stay
      if (!(std::ofstream{file} << (option == "--svg" ? step.svg(name) : step.trace()).value()))
        throw std::runtime_error{"cannot write " + file};
  }
}

int main(int argc, char** argv) {
  return run_main(argc, argv, {"Simulates a training strategy.", {"--svg", "--trace"}, false}, run);
}
