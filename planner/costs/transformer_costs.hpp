#pragma once

#include "planner/costs/transformer_exchanges.hpp"
#include "planner/systems/gpu_system.hpp"
#include "runtime/selection/selection.hpp"
#include "training/simulated/cost_model.hpp"

#include <memory>
#include <vector>

namespace ringmaster::training {

/// A transformer on a system, in seconds and bytes, with the terms of iteration_estimate.hpp. A sample is a sequence.
/// The first layer's weight has the embedding's with it. `by_strategy`: what the strategy's own operations do
/// (`needs_of`); other exchanges of context and expert ranks are in a layer's time. Its layers are transformer_places.
std::unique_ptr<cost_model> transformer_costs(const language_model& trained, const gpu_system& on,
                                              const training_setting& how, const std::vector<beyond>& by_strategy = {});
/// The same, simulated by fewer ranks that represent all, since ranks along an axis do the same: two of the
/// tensor-parallel and two of the data-parallel ranks; with fully shared weights two of the ranks that share them and
/// two of their groups, along the data axis. Collectives cost what they cost among all ranks. With fully shared weights
/// the work of tensor-parallel ranks is in a layer's time.
std::unique_ptr<cost_model> transformer_costs(const language_model& trained, const gpu_system& on,
                                              const training_setting& how, const mesh& simulated);

/// The places of a strategy with these needs.
transformer_places places_of(const language_model& trained, const training_setting& how,
                             const std::vector<beyond>& by_strategy);
inline uint32_t places_of(const language_model& trained, const training_setting& how) {
  return places_of(trained, how, {}).count();
}

/// A GPT on hosts like this one, with one rank each: layers as on the two-core host, with this machine's memory
/// bandwidth; collectives and hops by the constants that `ringmaster tune` measured, each with the cheapest of the
/// runtime's own schedules.
std::unique_ptr<cost_model> measured_costs(const language_model& trained, const cost_constants& network,
                                           double memory_bandwidth, const training_setting& how);

} // namespace ringmaster::training
