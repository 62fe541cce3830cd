#pragma once

#include "client/parallel/tensor.hpp"
#include "client/parallel/tensor_group.hpp"

namespace ringmaster::parallel {

// A linear layer on one rank: y = x w + b. Rows of x are samples, however many axes they are counted on.

/// x [batch x inputs], w [inputs x outputs], b [outputs], or empty for none: y [batch x outputs]. Errors:
/// invalid_argument, with the shapes that do not go together.
caf::expected<tensor> linear_forward(const tensor& x, const tensor& w, const tensor& b = {});

/// Of a loss by each, in their shapes.
struct linear_gradients {
  tensor x, w, b;
};

/// `by_y`: the loss's gradient by y, [batch x outputs]. That by x is by_y w^T, by w x^T by_y, and by b the sum of
/// by_y's rows. Errors: as of `linear_forward`.
caf::expected<linear_gradients> linear_backward(const tensor& x, const tensor& w, const tensor& by_y);

/// What a rank has of two layers, y = relu(x V + a) W + b, as Shoeybi et al. 2019 (Megatron-LM) cut them: V by columns
/// and W by rows, so that between the two nothing is sent, and one all-reduce each way does.
struct megatron_pair {
  tensor first_weight;  ///< Of V: [inputs x hidden/N].
  tensor first_bias;    ///< Of a: [hidden/N]; empty: none.
  tensor second_weight; ///< Of W: [hidden/N x outputs].
  tensor second_bias;   ///< b whole, [outputs], the same on all ranks; empty: none.
};

struct pair_output {
  tensor y;      ///< [batch x outputs], the same on all ranks.
  tensor hidden; ///< relu(x V + a), this rank's [batch x hidden/N]: for the way back.
};

/// x: [batch x inputs], the same on all ranks. A rank sends 2(N-1)/N of y. Errors: those of linear_forward and of
/// tensor_group.
caf::expected<pair_output> pair_forward(tensor_group& over, const megatron_pair& layers, const tensor& x);

/// Of a loss: by x [batch x inputs], the same on all ranks; by what the rank has of the parameters, in their shapes,
/// whole sums over the batch. Those by second_bias are the same on all ranks.
struct pair_gradients {
  tensor x, first_weight, first_bias, second_weight, second_bias;
};

/// `hidden`: of the way forward; `by_y`: [batch x outputs], the same on all ranks. A rank sends 2(N-1)/N of x. Errors:
/// as of `pair_forward`.
caf::expected<pair_gradients> pair_backward(tensor_group& over, const megatron_pair& layers, const tensor& x,
                                            const tensor& hidden, const tensor& by_y);

} // namespace ringmaster::parallel
