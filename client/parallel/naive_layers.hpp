#pragma once

#include "client/parallel/tensor.hpp"
#include "client/parallel/tensor_group.hpp"

namespace ringmaster::parallel {

// Tensor parallelism as one writes it first: every rank has some columns of each layer's weight, [inputs x outputs/N],
// and some features of what goes in and out; what a product needs is gathered before it. Xu et al. 2021 (GSPMD) make a
// compiler write such programs. `batch` stands for all axes but the last.

/// What a layer's product needs: x [batch x inputs/N] of each rank gives [batch x inputs], in the order of the ranks.
/// A rank sends (N-1)/N of the result. Errors: those of tensor_group.
caf::expected<tensor> gather_input(tensor_group& over, const tensor& x);

/// What the layer's products come to: y [batch x outputs/N] gives [batch x outputs]. The rest as `gather_input`.
caf::expected<tensor> gather_output(tensor_group& over, const tensor& y);

/// Back through `gather_output`: of the gradient by the whole output, [batch x outputs], which all ranks have, this
/// rank's [batch x outputs/N]. Nothing is sent. Errors: invalid_argument where the last axis does not divide.
caf::expected<tensor> slice_output_gradient(const tensor_group& over, const tensor& by_y);

/// Back through `gather_input`: each rank's product gave a summand of the gradient by the whole input, [batch x
/// inputs]; this rank's features of the sum, [batch x inputs/N]. A rank sends (N-1)/N of a summand. Errors: as
/// `slice_output_gradient`, and those of tensor_group.
caf::expected<tensor> reduce_input_gradient(tensor_group& over, const tensor& by_x);

} // namespace ringmaster::parallel
