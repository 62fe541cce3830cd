#pragma once

#include "client/parallel/tensor.hpp"

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

} // namespace ringmaster::parallel
