// A training strategy of your own, simulated: data parallel whose ranks reduce every second layer's gradient beside
// the backward, and the others in the end. See docs/strategies.md for the operations, runtime/training/strategies/
// for more of them.
#include "messages/errc.hpp"
#include "runtime/training/simulated/simulator.hpp"
#include "runtime/training/strategies/strategies.hpp"

#include <fmt/format.h>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

strategy half_beside(rank& self, const model& m) {
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

} // namespace

int main() {
  const model trained{.layers = 16, .global_batch = 256, .micro_batch = 32};
  constexpr uint32_t ranks = 8;
  auto report = [&](const char* name, auto program) {
    auto found = simulate([&](rank& self) { return program(self, trained); }, trained, ranks, lab_costs());
    if (!found) {
      fmt::print(stderr, "my_strategy: {}\n", render(found.error()));
      return false;
    }
    fmt::print("{:<12} {:.3f} ms, peak {} elements\n", name, 1e3 * found->time,
               found->ranks[found->peak_rank].peak_memory);
    return true;
  };
  return report("ddp", data_parallel.run) && report("half_beside", half_beside)
             && report("ddp-overlap", overlapping_data_parallel.run)
           ? 0
           : 1;
}
