#pragma once

#include "planner/costs/transformer_costs.hpp"
#include "runtime/selection/selection.hpp"

namespace ringmaster::training {

/// A GPT on hosts like this one, with one rank each: layers as on the two-core host, with this machine's memory
/// bandwidth; collectives and hops by the constants that `ringmaster tune` measured, each with the cheapest of the
/// runtime's own schedules.
std::unique_ptr<cost_model> measured_costs(const language_model& trained, const cost_constants& network,
                                           double memory_bandwidth, const training_setting& how);

} // namespace ringmaster::training
