// A training strategy of your own, simulated: data parallel whose ranks reduce every second layer's gradient beside
// the backward, and the others in the end. See docs/strategies.md for the operations, training/strategies/
// for more of them.
//
//   build/release/examples/my_strategy                          # beside two others
//   build/release/examples/my_strategy --svg mine.svg           # as a picture; --trace FILE: for ui.perfetto.dev
//
// prints
//
//   ddp          41.133 ms, peak 2818572288 elements
//   half_beside  40.020 ms, peak 2952790016 elements
//   ddp-overlap  38.908 ms, peak 2818572288 elements
#include "messages/errc.hpp"
#include "runtime/text/version_text.hpp"
#include "training/pictures/train_picture.hpp"
#include "training/pictures/train_trace.hpp"
#include "training/simulated/simulator.hpp"
#include "training/strategies/strategies.hpp"

#include <fmt/format.h>

#include <fstream>
#include <string>
#include <vector>

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

constexpr auto help = R"(usage: my_strategy [--svg FILE] [--trace FILE]

Simulates a training strategy of your own beside two others.

  --svg FILE    a picture of it
  --trace FILE  a trace of it, for ui.perfetto.dev or chrome://tracing
  --version     which versions these are
  --help        this text
)";

const model trained{.layers = 16, .global_batch = 256, .micro_batch = 32};
constexpr uint32_t ranks = 8;

/// Where the picture and the trace go; empty: there is none.
struct files {
  std::string svg, trace;
};

caf::error write(const std::string& file, const caf::expected<std::string>& text) {
  if (!text)
    return text.error();
  if (!(std::ofstream{file} << *text))
    return make_error(errc::io_error, "cannot write " + file);
  fmt::print("wrote {}\n", file);
  return caf::none;
}

/// Simulates one, and shows it in the files.
caf::error report(const char* name, strategy (*program)(rank&, const model&), const files& shown = {}) {
  const bool with_events = !shown.svg.empty() || !shown.trace.empty();
  auto found = simulate([&](rank& self) { return program(self, trained); }, trained, ranks, lab_costs(), with_events);
  if (!found)
    return std::move(found.error());
  fmt::print("{:<12} {:.3f} ms, peak {} elements\n", name, 1e3 * found->time,
             found->ranks[found->peak_rank].peak_memory);
  caf::error problem;
  if (!shown.svg.empty())
    problem = write(shown.svg, picture_of({name, trained, ranks, &lab_costs()}, *found));
  if (!problem && !shown.trace.empty())
    problem = write(shown.trace, trace_of(*found, lab_costs()));
  return problem;
}

} // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args{argv + 1, argv + argc};
  files shown;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--help" || args[i] == "-h" || args[i] == "--version") {
      fmt::print("{}", args[i] == "--version" ? version_text("my_strategy") : help);
      return 0;
    }
    if ((args[i] != "--svg" && args[i] != "--trace") || i + 1 == args.size()) {
      fmt::print(stderr, "my_strategy: \"{}\" is no option here{}; --help lists them\n", args[i],
                 i + 1 == args.size() ? ", or wants a file" : "");
      return 2;
    }
    auto& file = args[i] == "--svg" ? shown.svg : shown.trace;
    file = args[++i];
  }
  auto problem = report("ddp", data_parallel.run);
  if (!problem)
    problem = report("half_beside", half_beside, shown);
  if (!problem)
    problem = report("ddp-overlap", overlapping_data_parallel.run);
  if (problem)
    fmt::print(stderr, "my_strategy: {}\n", render(problem));
  return problem ? 1 : 0;
}
