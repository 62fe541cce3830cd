#pragma once

#include "training/libtorch/module_layer.hpp"

namespace ringmaster::training {

struct module_tensor {
  parameter described;
  torch::Tensor tensor; ///< The module's own.
};

/// A module's parameters and batch norms' statistics in the order of layer::parameters: what is cut, what is
/// replicated, statistics. From now on batch norm's running statistics become those of the latest batch.
/// Throws std::runtime_error for batch norm without a momentum.
std::vector<module_tensor> tensors_of(const torch::nn::Module& x, const given_parameters& told);

} // namespace ringmaster::training
