#pragma once

#include "messages/errc.hpp"
#include "training/computed/computed_world.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace ringmaster::training {

struct trained_model {
  std::vector<std::vector<double>> parameters; ///< Layer by layer.
  double loss = 0;                             ///< The mean of the last step.
};

/// A model after five steps by `ranks` ranks with `bytes` bytes each.
inline trained_model train(const training_job& job, uint32_t ranks, uint64_t bytes = 4 << 20) {
  constexpr int steps = 5;
  computed_world world{job, ranks, bytes};
  trained_model result;
  for (int i = 0; i < steps; ++i) {
    auto losses = world.run_step();
    REQUIRE_MESSAGE(losses.engaged(), (losses ? "" : render(losses.error())));
    CHECK(losses->samples % job.shape.global_batch == 0); // ranks that share layers have the same ones
    result.loss = losses->loss / static_cast<double>(losses->samples);
  }
  for (uint32_t l = 0; l < job.layers.size(); ++l)
    for (uint32_t p = 0; p < job.layers[l]->parameters().size(); ++p)
      result.parameters.push_back(world.parameter_of(l, p));
  return result;
}

/// The largest difference of two parameters' elements.
inline double distance(const trained_model& a, const trained_model& b) {
  REQUIRE(a.parameters.size() == b.parameters.size());
  double largest = 0;
  for (size_t i = 0; i < a.parameters.size(); ++i)
    for (size_t j = 0; j < a.parameters[i].size(); ++j)
      largest = std::max(largest, std::abs(a.parameters[i][j] - b.parameters[i][j]));
  return largest;
}

} // namespace ringmaster::training
