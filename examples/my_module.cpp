// A torch::nn module of your own as a layer that every strategy can train on simulated devices: a gated one between two
// linear ones, on one rank and on several, one of which dies. Built with -DRINGMASTER_LIBTORCH=ON.
//
//   build/release/examples/my_module
//
// prints
//
//   1 rank,  ddp    loss 0.8864 ... 0.0745
//   4 ranks, zero3  loss 0.8864 ... 0.0745
//     step 30 is given up: device 0x3 is lost: killed on request, idle
//     the weight of layer 2 is lost in part: back to step 25; to be done again: 5 steps
//     device 0x4 has joined, from the next step on
//   3 ranks, 1f1b   loss 0.8864 ... 0.0745
//
// A line beside the others in tools/train/libtorch_main.cpp makes it a model of ringmaster-train, with all its options.
#include "actors/configuration/configuration.hpp"
#include "client/cluster.hpp"
#include "client/training/training_run.hpp"
#include "runtime/configuration/places.hpp"
#include "training/libtorch/libtorch_models.hpp"
#include "training/libtorch/module_layer.hpp"

#include <fmt/format.h>
#include <torch/torch.h>

#include <cmath>
#include <memory>
#include <string_view>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

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
class quarters final : public data_set {
public:
  quarters(uint32_t first, uint32_t count) : first_(first), count_(count) {}

  std::string name() const override { return "points of a square"; }
  uint32_t count() const override { return count_; }
  sample_shape shape() const override { return {.columns = 2}; }
  uint32_t label_count() const override { return classes; }

private:
  void fill_one(uint32_t sample, std::span<float> input, std::span<uint32_t> labels) const override {
    const auto number = static_cast<double>(first_ + sample);
    const auto x = std::remainder(number * 0.7548776662, 1), y = std::remainder(number * 0.5698402910, 1);
    if (!input.empty()) {
      input[0] = static_cast<float>(2 * x);
      input[1] = static_cast<float>(2 * y);
    }
    if (!labels.empty())
      labels[0] = (x > 0 ? 1 : 0) + (y > 0 ? 2 : 0);
  }

  uint32_t first_, count_;
};

/// `kill_at`: in this step a device dies; 0: none does.
caf::error train(caf::actor_system& system, const coordinator_actor& coordinator, std::string_view strategy,
                 uint32_t ranks, uint64_t micro_batch, uint64_t kill_at = 0) {
  run_settings what;
  what.data = {std::make_shared<quarters>(0, 1600), std::make_shared<quarters>(1600, 400)};
  what.ranks = ranks;
  what.epochs = 4;
  auto& job = what.job;
  job.layers = layers();
  job.shape = {.layers = static_cast<uint32_t>(job.layers.size()), .global_batch = 64, .micro_batch = micro_batch};
  job.strategy = strategy_of(strategy);
  job.update = {.kind = optimizer_kind::adam, .rate = 0.01};
  if (kill_at != 0)
    what.kill_at = kill_at;
  run_watcher watcher;
  watcher.note = [](const std::string& text) { fmt::print("  {}\n", text); };
  auto found = training::train(system, coordinator, std::move(what), watcher);
  if (!found)
    return std::move(found.error());
  fmt::print("{:8} {:6} loss {:.4f} ... {:.4f}\n", ranks == 1 ? "1 rank," : fmt::format("{} ranks,", ranks), strategy,
             found->epochs.front().loss, found->epochs.back().loss);
  return caf::none;
}

caf::error run(caf::actor_system& system, const coordinator_actor& coordinator) {
  if (auto problem = train(system, coordinator, "ddp", 1, 64))
    return problem;
  if (auto problem = train(system, coordinator, "zero3", 4, 16))
    return problem;
  return train(system, coordinator, "1f1b", 3, 16, 30);
}

} // namespace

int main(int argc, char** argv) {
  configuration cfg;
  caf::error problem = cfg.read(argc, argv, find_configuration());
  if (!problem && cfg.cli_helptext_printed)
    return 0;
  if (!problem)
    problem = cfg.check_remainder();
  if (problem) {
    fmt::print(stderr, "my_module: {}\n", render(problem));
    return code_of(problem) == errc::io_error ? 1 : 2; // 2: what the command line or the file says cannot be
  }
  auto opts = cfg.values();
  opts.log.level = "warn"; // this program tells it itself
  caf::actor_system system{cfg};
  auto home = cluster::open(system, opts); // of our own, or the one that caf-run has started
  problem = home ? run(system, (*home)->coordinator()) : std::move(home.error());
  if (problem)
    fmt::print(stderr, "my_module: {}\n", render(problem));
  return problem ? 1 : 0;
}
