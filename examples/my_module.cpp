// A torch::nn module of your own as a layer that every strategy can train: a gated one between two
// linear ones, on one rank and on several. Built with -DRINGMASTER_LIBTORCH=ON.
//
//   build/release/examples/my_module
//
// prints
//
//   1 rank,  ddp    loss 1.4054 ... 0.0602
//   4 ranks, zero3  loss 1.4054 ... 0.0602
//   3 ranks, 1f1b   loss 1.4054 ... 0.0602
#include "messages/errc.hpp"
#include "runtime/text/version_text.hpp"
#include "runtime/training/computed/computed_world.hpp"
#include "runtime/training/libtorch/libtorch_models.hpp"
#include "runtime/training/libtorch/module_layer.hpp"

#include <fmt/format.h>
#include <torch/torch.h>

#include <cmath>
#include <string_view>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

constexpr auto help = R"(usage: my_module

Trains a torch::nn module of your own with three strategies.

  --version  which versions these are
  --help     this text
)";

constexpr int64_t width = 16;
constexpr uint32_t classes = 4;

struct gated : torch::nn::Module {
  gated()
    : value(register_module("value", torch::nn::Linear(width, width))),
      gate(register_module("gate", torch::nn::Linear(width, width))) {}
  torch::Tensor forward(const torch::Tensor& x) { return x + torch::sigmoid(gate(x)) * value(x); }

  torch::nn::Linear value, gate;
};

model_layers layers() {
  model_layers result;
  result.push_back(libtorch_linear(2, width));
  result.push_back(module_layer("gated 16", {width}, [] { return std::make_shared<gated>(); }));
  result.push_back(libtorch_linear(width, classes, nonlinearity::tanh));
  return result;
}

/// Points of a square, each labelled with the quarter it lies in.
class quarters final : public batch_source {
public:
  void fill(uint64_t step, range samples, std::span<float> inputs, std::span<uint32_t> labels) const override {
    for (auto i = samples.begin; i < samples.end; ++i) {
      const auto number = static_cast<double>(step * 64 + i);
      const auto x = std::remainder(number * 0.7548776662, 1), y = std::remainder(number * 0.5698402910, 1);
      if (!inputs.empty()) {
        inputs[2 * (i - samples.begin)] = static_cast<float>(2 * x);
        inputs[2 * (i - samples.begin) + 1] = static_cast<float>(2 * y);
      }
      if (!labels.empty())
        labels[i - samples.begin] = (x > 0 ? 1 : 0) + (y > 0 ? 2 : 0);
    }
  }
};

caf::error train(std::string_view strategy, uint32_t ranks, uint64_t micro_batch) {
  training_job job;
  job.layers = layers();
  job.shape = {.layers = static_cast<uint32_t>(job.layers.size()), .global_batch = 64, .micro_batch = micro_batch};
  job.strategy = strategy_of(strategy);
  job.update = {.kind = optimizer_kind::adam, .rate = 0.01};
  job.data = std::make_shared<quarters>();
  computed_world world{job, ranks, 1 << 20};
  double first = 0, last = 0;
  for (int step = 0; step < 100; ++step) {
    auto losses = world.run_step();
    if (!losses)
      return losses.error();
    last = losses->loss / static_cast<double>(losses->samples);
    first = step == 0 ? last : first;
  }
  fmt::print("{:8} {:6} loss {:.4f} ... {:.4f}\n", ranks == 1 ? "1 rank," : fmt::format("{} ranks,", ranks), strategy,
             first, last);
  return caf::none;
}

} // namespace

int main(int argc, char** argv) {
  const std::string_view asked = argc > 1 ? argv[1] : "";
  if (asked == "--help" || asked == "-h" || asked == "--version") {
    fmt::print("{}", asked == "--version" ? version_text("my_module") : help);
    return 0;
  }
  if (argc > 1) {
    fmt::print(stderr, "my_module: \"{}\" is no option here; --help says more\n", asked);
    return 2;
  }
  auto problem = train("ddp", 1, 64);
  if (!problem)
    problem = train("zero3", 4, 16);
  if (!problem)
    problem = train("1f1b", 3, 16);
  if (problem)
    fmt::print(stderr, "my_module: {}\n", render(problem));
  return problem ? 1 : 0;
}
