#pragma once

#include "bench/training_real/plain_libtorch.hpp"

#include <torch/torch.h>

namespace ringmaster::training {

/// A tensor of a plain module, and how one of ours makes it.
struct plain_tensor {
  torch::Tensor tensor;
  std::function<torch::Tensor(const torch::Tensor& ours)> of_ours;
  std::function<torch::Tensor(const torch::Tensor& theirs)> to_ours;
};

/// What one of our layers is in plain libtorch, and its tensors in our order.
struct plain_part {
  std::shared_ptr<torch::nn::Module> module;
  std::function<torch::Tensor(torch::Tensor)> forward;
  std::vector<plain_tensor> tensors;
};

std::vector<plain_part> plain_perceptron(std::span<const uint64_t> sizes);
std::vector<plain_part> plain_lenet();
std::vector<plain_part> plain_resnet9();
std::vector<plain_part> plain_bytes(const byte_transformer& x);

/// As it is; a matrix the other way round.
plain_tensor same_as(torch::Tensor x);
plain_tensor transposed(torch::Tensor x);

} // namespace ringmaster::training
