#include "runtime/schedule/schedule.hpp"
#include "runtime/training/libtorch/libtorch_models.hpp"
#include "runtime/training/libtorch/module_layer.hpp"

#include <fmt/format.h>
#include <torch/torch.h>

#include <cmath>

namespace ringmaster::training {

namespace {

/// y = f(x) W + b, or what some rows of W make of it; the first rank adds b.
struct linear_module : torch::nn::Module {
  linear_module(uint64_t inputs, uint64_t outputs, nonlinearity which, shard tensor)
    : f(which), rows(block_of({}, inputs, tensor.count, tensor.index)), is_whole(tensor.whole()),
      adds(tensor.index == 0) {
    const auto mine = static_cast<int64_t>(rows.count), to = static_cast<int64_t>(outputs);
    weight = register_parameter("weight", torch::zeros({mine, to}));
    bias = register_parameter("bias", torch::zeros({to}));
  }

  torch::Tensor forward(torch::Tensor x) {
    if (!is_whole)
      x = x.narrow(1, static_cast<int64_t>(rows.offset), static_cast<int64_t>(rows.count));
    if (f != nonlinearity::none)
      x = f == nonlinearity::relu ? torch::relu(x) : torch::tanh(x);
    return adds ? torch::addmm(bias, x, weight) : torch::mm(x, weight);
  }

  nonlinearity f;
  block_range rows;
  bool is_whole, adds;
  torch::Tensor weight, bias;
};

} // namespace

std::unique_ptr<const layer> libtorch_linear(uint64_t inputs, uint64_t outputs, nonlinearity f) {
  const auto bound = 1 / std::sqrt(static_cast<double>(inputs));
  const auto first = f == nonlinearity::none ? "" : fmt::format("{} ", name_of(f));
  return module_layer(
    {.name = fmt::format("{}linear {}x{}", first, inputs, outputs),
     .sample = {static_cast<int64_t>(inputs)},
     .make = [=](shard tensor) { return std::make_shared<linear_module>(inputs, outputs, f, tensor); },
     .told = {{"weight", {cut::rows, bound}}, {"bias", {cut::replicated, bound}}},
     .cannot_share = [](uint32_t) { return std::string{}; }});
}

model_layers libtorch_perceptron(std::span<const uint64_t> sizes, nonlinearity f) {
  model_layers result;
  for (size_t i = 0; i + 1 < sizes.size(); ++i)
    result.push_back(libtorch_linear(sizes[i], sizes[i + 1], i == 0 ? nonlinearity::none : f));
  return result;
}

} // namespace ringmaster::training
