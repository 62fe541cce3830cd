#pragma once

#include "training/layers/layer.hpp"

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <functional>
#include <map>

namespace ringmaster::training {

/// A module of libtorch's, and how a batch goes through it.
struct made_module {
  std::shared_ptr<torch::nn::Module> module;
  std::function<torch::Tensor(const torch::Tensor&)> forward;

  template <class Module>
  made_module(std::shared_ptr<Module> x)
    : module(x), forward([its = x.get()](const torch::Tensor& batch) { return its->forward(batch); }) {}
  template <class Module>
  made_module(const torch::nn::ModuleHolder<Module>& x) : made_module(x.ptr()) {}
};

/// What a module does not say of a parameter.
struct given_parameter {
  cut tensor = cut::replicated;
  double bound = 0; ///< See parameter::bound.
};

/// By a parameter's name.
using given_parameters = std::map<std::string, given_parameter>;

/// A module as a layer. Its forward takes a tensor of [samples, sample...] and gives one whose first size is `samples`;
/// it writes to no argument, draws no random number, and keeps nothing but what batch norm does. Tensors that it
/// registers as buffers are constants.
struct module_plan {
  std::string name;            ///< As layer::name: "conv 3x32x32 to 16x8x8".
  std::vector<int64_t> sample; ///< A sample's sizes.
  /// A new one, of the numbers it likes: for a tensor-parallel rank, its part of the parameters, whose outputs are
  /// summands. Thread-safe.
  std::function<made_module(shard)> make;
  /// A tensor is a matrix of its first size rows, and a vector a row. Others are replicated,
  /// and begin as PyTorch has it: what is constant as that, the rest within 1 / sqrt(inputs).
  given_parameters told{};
  /// See layer::cannot_share; none: only one rank can have it.
  std::function<caf::error(uint32_t ranks)> cannot_share{};
};

/// The layer. Autograd's graph is what its forward leaves for its backward; parameters are not copied, gradients once.
/// What its module throws comes out as a std::runtime_error with a sentence, from here as from the layer's calls.
/// Throws for a module that cannot take a batch of zeros, and for batch norm without a momentum.
std::unique_ptr<const layer> module_layer(module_plan plan);

/// A layer that is not shared: `make` returns the module, as holder or shared pointer.
template <class Make>
std::unique_ptr<const layer> module_layer(std::string name, std::vector<int64_t> sample, Make make) {
  return module_layer({std::move(name), std::move(sample), [make](shard) { return made_module{make()}; }});
}

} // namespace ringmaster::training
