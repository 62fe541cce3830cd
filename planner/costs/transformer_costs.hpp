#pragma once

#include "planner/costs/transformer_places.hpp"
#include "planner/systems/gpu_system.hpp"
#include "training/simulated/cost_model.hpp"

#include <memory>
#include <vector>

namespace ringmaster::training {

/// A transformer on a system, in seconds and bytes, with the terms of iteration_estimate.hpp. A sample is a sequence.
/// The first layer's weight has the embedding's with it. `by_strategy`: what its own operations do, `needs_of` it; what
/// of context's and experts' ranks is not among that is in a layer's time. Its layers are places, transformer_places.
std::unique_ptr<cost_model> transformer_costs(const language_model& trained, const gpu_system& on,
                                              const parallel_setting& how, const std::vector<beyond>& by_strategy = {});
/// The same for a world of that shape, of fewer ranks that stand for all, since along a side they do the same: two for
/// all tensor-parallel ones, two for all data-parallel ones; of those that share weights fully two, and two of their
/// groups, along the data side. What they share, gather and sum is as of all. Where weights are shared fully, what
/// tensor-parallel ranks do is in a layer's time.
std::unique_ptr<cost_model> transformer_costs(const language_model& trained, const gpu_system& on,
                                              const parallel_setting& how, const mesh& simulated);

/// The layers of a strategy that has these needs.
transformer_places places_of(const language_model& trained, const parallel_setting& how,
                             const std::vector<beyond>& by_strategy);
inline uint32_t places_of(const language_model& trained, const parallel_setting& how) {
  return places_of(trained, how, {}).count();
}

} // namespace ringmaster::training
