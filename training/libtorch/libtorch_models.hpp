#pragma once

#include "training/layers/plain_layers.hpp"

#include <caf/expected.hpp>

namespace ringmaster::training {

// Models whose layers libtorch computes. Tensor-parallel ranks can share the perceptron and the transformer.

/// Linear layers as plain_layers' have them, with the same parameters; see `linear` there.
std::unique_ptr<const layer> libtorch_linear(uint64_t inputs, uint64_t outputs, nonlinearity f = nonlinearity::none);
/// 784-128-10. At least two sizes, none 0.
model_layers libtorch_perceptron(std::span<const uint64_t> sizes, nonlinearity f = nonlinearity::relu);

/// How the largest of 2x2 are found, in float32: by libtorch itself, or by oneDNN, whose layout has channels in blocks
/// of a vector. That takes 0.3 of the time where vectors have masks; elsewhere it is no faster, and several times as
/// slow with channels that fill no vector.
enum class pooling : uint8_t { native, in_blocks };
pooling faster_pooling();

/// LeNet-5 (LeCun et al. 1998) as it is written today, with ReLU, largest of 2x2, and all channels connected: digits of
/// 1x28x28; 61,706 parameters for 10 classes.
model_layers lenet(pooling by, uint64_t classes = 10);
model_layers lenet(uint64_t classes = 10); ///< By the faster one.
/// Eight layers of convolutions with batch norm, two of them residual: images of 3x32x32; 431,946 parameters for
/// 10 classes.
model_layers resnet9(uint64_t classes = 10);

/// What each byte of a text is followed by, from it and those before it: embedding with positions, then blocks of
/// attention and feed-forward, each behind a layer norm and added to what goes in (Radford et al., GPT-2, 2019), then
/// a norm and 256 outputs a position.
struct byte_transformer {
  uint64_t positions = 64; ///< Bytes of a sample, which are its labels' count, too.
  uint64_t width = 64;
  uint64_t heads = 4;
  uint64_t blocks = 2;
  uint64_t hidden = 256; ///< Of feed-forward.
};
/// 2 x blocks + 2 layers. Errors: invalid_argument for a 0, and for heads that do not divide the width.
caf::expected<model_layers> layers_of(const byte_transformer& x);

} // namespace ringmaster::training
