#pragma once

#include <ringmaster/strategy/rank.hpp>

namespace ringmaster::test {

using namespace training;

/// Forward and backward of a model that has one layer: the gradient by its weight, of x's samples.
inline task<weight_gradient> gradient_by(rank& self, const weight& w, const activation& x) {
  auto y = co_await self.forward(x, w);
  auto by_output = co_await self.loss(y);
  auto [by_weight, by_input] = co_await self.backward(x, w, by_output);
  co_return std::move(by_weight);
}

} // namespace ringmaster::test
