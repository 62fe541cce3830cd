#pragma once

#include <ringmaster/strategy/rank.hpp>

namespace ringmaster::test {

using namespace training;

/// Forward and backward pass of a model with one layer: returns the gradient by its weight, for x's samples.
inline task<weight_gradient> gradient_by(rank& self, const weight& w, const activation& x) {
  auto y = co_await self.forward(x, w);
  auto by_output = co_await self.loss(y);
  auto [by_weight, by_input] = co_await self.backward(x, w, by_output);
  co_return std::move(by_weight);
}

} // namespace ringmaster::test
