// A torch::nn module of your own as a layer that every strategy can train on simulated devices: a gated one between two
// linear ones, on one rank and on several, one of which dies. Built with -DRINGMASTER_LIBTORCH=ON.
// build/release/examples/my_module prints
//
//   1 ranks, ddp    loss 0.8864 ... 0.0745
//   4 ranks, zero3  loss 0.8864 ... 0.0745
//     step 30 is given up: device 0x3 is lost: ...
//   3 ranks, 1f1b   loss 0.8864 ... 0.0745
#include <ringmaster/module.hpp>
#include <ringmaster/training_run.hpp>

#include <torch/torch.h>

#include <cmath>
#include <cstdio>

using namespace ringmaster;

constexpr int64_t width = 16;
constexpr uint32_t classes = 4;

struct gated : torch::nn::Module {
  gated()
    : value(register_module("value", torch::nn::Linear(width, width))),
      gate(register_module("gate", torch::nn::Linear(width, width))) {}
  torch::Tensor forward(const torch::Tensor& x) { return x + torch::sigmoid(gate(x)) * value(x); }

  torch::nn::Linear value, gate;
};

/// Points of a square, each labelled with its quarter.
class quarters final : public own_data_set {
public:
  quarters(uint32_t first, uint32_t count) : first_(first), count_(count) {}
  std::string name() const override { return "points of a square"; }
  uint32_t count() const override { return count_; }
  sample_size shape() const override { return {.columns = 2}; }
  uint32_t label_count() const override { return classes; }
  void fill(uint32_t sample, std::span<float> input, std::span<uint32_t> labels) const override {
    const auto number = static_cast<double>(first_ + sample);
    const auto x = std::remainder(number * 0.7548776662, 1), y = std::remainder(number * 0.5698402910, 1);
    if (!input.empty())
      input[0] = static_cast<float>(2 * x), input[1] = static_cast<float>(2 * y);
    if (!labels.empty())
      labels[0] = (x > 0 ? 1 : 0) + (y > 0 ? 2 : 0);
  }

  uint32_t first_, count_;
};

/// `kill_at`: in this step a device dies.
static void show(cluster& home, const char* strategy, uint32_t ranks, uint64_t micro_batch,
                 std::optional<uint64_t> kill_at = {}) {
  training_settings settings;
  settings.layers = {libtorch_linear_layer(2, width),
                     module_layer("gated 16", {width}, [] { return std::make_shared<gated>(); }),
                     libtorch_linear_layer(width, classes, activation_function::tanh)};
  settings.data = {data_handle{std::make_shared<quarters>(0, 1600)},
                   data_handle{std::make_shared<quarters>(1600, 400)}};
  settings.strategy = strategy;
  settings.optimizer = {.rule = optimizer_settings::kind::adam, .rate = 0.01};
  settings.ranks = ranks;
  settings.epochs = 4;
  settings.global_batch = 64;
  settings.micro_batch = micro_batch;
  settings.kill_at_step = kill_at;
  training_observer observer;
  observer.on_note = [](const std::string& text) { std::printf("  %s\n", text.c_str()); };
  const auto found = train(home, settings, observer).value();
  std::printf("%u ranks, %-6s loss %.4f ... %.4f\n", ranks, strategy, found.epochs.front().loss,
              found.epochs.back().loss);
}

int main(int argc, char** argv) {
  return run_main(argc, argv, [](cluster& home) {
    show(home, "ddp", 1, 64);
    show(home, "zero3", 4, 16);
    show(home, "1f1b", 3, 16, 30);
  });
}
