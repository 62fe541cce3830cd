#include "runtime/reduction/instruction_set.hpp"
#include "training/libtorch/libtorch_models.hpp"
#include "training/libtorch/module_layer.hpp"

#include <fmt/format.h>
#include <torch/torch.h>

#include <cmath>

namespace ringmaster::training {

namespace {

struct image {
  int64_t channels, side;

  std::vector<int64_t> sizes() const { return {channels, side, side}; }
  std::string text() const { return fmt::format("{}x{}x{}", channels, side, side); }
};

bool are_numbers(const torch::Tensor& x) {
  torch::NoGradGuard guard;
  return std::isfinite(x.sum().item<float>());
}

/// Convolution, the largest of each 2x2, and ReLU, which gives the same before and after it. oneDNN's pooling makes
/// numbers of what is none, and that would not be noticed: these go libtorch's own way.
struct pooled_convolution_module : torch::nn::Module {
  pooled_convolution_module(int64_t from, int64_t to, int64_t padding, pooling by)
    : convolution(register_module("convolution",
                                  torch::nn::Conv2d(torch::nn::Conv2dOptions(from, to, 5).padding(padding)))),
      may_use_blocks(by == pooling::in_blocks && at::hasMKLDNN()) {}
  torch::Tensor forward(const torch::Tensor& x) {
    const bool in_blocks = may_use_blocks && x.scalar_type() == torch::kFloat && are_numbers(x)
                           && are_numbers(convolution->weight) && are_numbers(convolution->bias);
    auto y = torch::relu(torch::max_pool2d(convolution(in_blocks ? x.to_mkldnn() : x), 2, 2));
    return in_blocks ? y.to_dense() : y;
  }

  torch::nn::Conv2d convolution;
  const bool may_use_blocks;
};

/// Convolution with a border of zeros, batch norm, ReLU.
struct normed_convolution_module : torch::nn::Module {
  normed_convolution_module(int64_t from, int64_t to, int64_t kernel, int64_t stride)
    : convolution(register_module(
      "convolution",
      torch::nn::Conv2d(torch::nn::Conv2dOptions(from, to, kernel).stride(stride).padding((kernel - 1) / 2)))),
      norm(register_module("norm", torch::nn::BatchNorm2d(to))) {}
  torch::Tensor forward(const torch::Tensor& x) { return torch::relu(norm(convolution(x))); }

  torch::nn::Conv2d convolution;
  torch::nn::BatchNorm2d norm;
};

/// y = x + what two of them make of it.
struct residual_module : torch::nn::Module {
  explicit residual_module(int64_t channels)
    : first(register_module("first", std::make_shared<normed_convolution_module>(channels, channels, 3, 1))),
      second(register_module("second", std::make_shared<normed_convolution_module>(channels, channels, 3, 1))) {}
  torch::Tensor forward(const torch::Tensor& x) { return x + second->forward(first->forward(x)); }

  std::shared_ptr<normed_convolution_module> first, second;
};

std::unique_ptr<const layer> pooled_convolution(image from, image to, int64_t padding, pooling by) {
  return module_layer(fmt::format("conv 5x5 {} to {}", from.text(), to.text()), from.sizes(), [=] {
    return std::make_shared<pooled_convolution_module>(from.channels, to.channels, padding, by);
  });
}

std::unique_ptr<const layer> normed_convolution(image from, image to, int64_t kernel) {
  return module_layer(fmt::format("conv {}x{} {} to {}", kernel, kernel, from.text(), to.text()), from.sizes(), [=] {
    return std::make_shared<normed_convolution_module>(from.channels, to.channels, kernel, from.side / to.side);
  });
}

std::unique_ptr<const layer> residual(image of) {
  return module_layer("residual 3x3 " + of.text(), of.sizes(),
                      [=] { return std::make_shared<residual_module>(of.channels); });
}

} // namespace

pooling faster_pooling() {
  return best_instruction_set() == instruction_set::avx512 ? pooling::in_blocks : pooling::native;
}

model_layers lenet(pooling by, uint64_t classes) {
  model_layers result;
  result.push_back(pooled_convolution({1, 28}, {6, 14}, 2, by));
  result.push_back(pooled_convolution({6, 14}, {16, 5}, 0, by));
  result.push_back(libtorch_linear(400, 120));
  result.push_back(libtorch_linear(120, 84, nonlinearity::relu));
  result.push_back(libtorch_linear(84, classes, nonlinearity::relu));
  return result;
}

model_layers lenet(uint64_t classes) {
  return lenet(faster_pooling(), classes);
}

model_layers resnet9(uint64_t classes) {
  model_layers result;
  result.push_back(normed_convolution({3, 32}, {16, 8}, 7));
  result.push_back(normed_convolution({16, 8}, {32, 4}, 3));
  result.push_back(residual({32, 4}));
  result.push_back(normed_convolution({32, 4}, {64, 2}, 3));
  result.push_back(normed_convolution({64, 2}, {128, 1}, 3));
  result.push_back(residual({128, 1}));
  result.push_back(libtorch_linear(128, 128));
  result.push_back(libtorch_linear(128, classes, nonlinearity::relu));
  return result;
}

} // namespace ringmaster::training
