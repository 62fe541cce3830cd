#pragma once

#include <ringmaster/layer.hpp>

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <functional>

// Needs the component libtorch: find_package(ringmaster COMPONENTS libtorch), ringmaster::libtorch.

namespace RINGMASTER_API {

/// A module of libtorch and how a batch passes through it.
struct module_instance {
  std::shared_ptr<torch::nn::Module> module; ///< Its parameters are trained; its buffers are constants.
  std::function<torch::Tensor(const torch::Tensor&)> forward; ///< From [samples, ...] to [samples, ...].

  /// A module with a function forward(Tensor).
  template <class Module>
  module_instance(std::shared_ptr<Module> x)
    : module(x), forward([its = x.get()](const torch::Tensor& batch) { return its->forward(batch); }) {}
  /// \copydoc module_instance(std::shared_ptr<Module>)
  template <class Module>
  module_instance(const torch::nn::ModuleHolder<Module>& x) : module_instance(x.ptr()) {}
};

/// A module as a layer that one rank has whole. `sample`: sizes of one sample. `make` is called by several threads; the
/// module's forward draws no random numbers and keeps no state but batch norm's. Throws std::runtime_error for a module
/// that cannot take a batch of zeros.
layer_handle module_layer(std::string name, std::vector<int64_t> sample, std::function<module_instance()> make);

/// y = f(x) W + b, computed by libtorch.
layer_handle libtorch_linear_layer(uint64_t inputs, uint64_t outputs,
                                   activation_function f = activation_function::none);

} // namespace RINGMASTER_API
