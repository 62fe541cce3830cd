#pragma once

#include "training/layers/layer.hpp"

#include <fmt/format.h>
#include <torch/types.h>

#include <stdexcept>

namespace ringmaster::training {

/// Tensors' numbers come from malloc as they are freed, and not from ever new memory. Asked for before `main`.
void use_own_tensor_memory();

/// Ranks are threads already, so what this thread asks of libtorch is computed in it alone.
void compute_in_one_thread();

/// A layer's call, and what the library throws as a sentence of that layer's.
template <class Body>
auto said_by(const std::string& name, Body body) {
  compute_in_one_thread();
  try {
    return body();
  } catch (const c10::Error& x) {
    throw std::runtime_error{fmt::format("{}: {}", name, x.what_without_backtrace())};
  } catch (const std::exception& x) {
    throw std::runtime_error{fmt::format("{}: {}", name, x.what())};
  }
}

inline torch::ScalarType scalar_of(precision x) {
  return x == precision::float32 ? torch::kFloat32 : torch::kFloat64;
}

/// A view of numbers that it does not own.
inline torch::Tensor view_of(const std::byte* data, at::IntArrayRef sizes, torch::ScalarType type) {
  return torch::from_blob(const_cast<std::byte*>(data), sizes, torch::TensorOptions{type});
}

} // namespace ringmaster::training
