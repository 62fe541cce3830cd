#pragma once

#include "training/layers/layer.hpp"

#include <string_view>

namespace ringmaster::training {

enum class nonlinearity : uint8_t { none, relu, tanh };

/// "relu" and so on; empty where there is none of that name.
std::string_view name_of(nonlinearity x);

/// y = f(x) W + b. The nonlinearity comes first, so that ranks that share the layer make summands: W is cut by rows,
/// and the first of them adds the bias; or both by columns of the output.
std::unique_ptr<const layer> linear(uint64_t inputs, uint64_t outputs, nonlinearity f = nonlinearity::none);

/// y = x + f(x V + a) W + b: Megatron's pair, V and a cut by columns, W by rows; the first of the ranks that share it
/// adds x and b.
std::unique_ptr<const layer> feed_forward(uint64_t width, uint64_t hidden, nonlinearity f = nonlinearity::relu);

/// Linear layers from each size to the next, with a nonlinearity between them: 784-128-10. At least two sizes, none 0.
model_layers perceptron(std::span<const uint64_t> sizes, nonlinearity f = nonlinearity::relu);

} // namespace ringmaster::training
