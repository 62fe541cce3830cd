#pragma once

#include "planner/costs/transformer_costs.hpp"
#include "runtime/selection/selection.hpp"

namespace ringmaster::training {

/// A GPT on hosts like this one, a rank each: layers as on the two-core host, with this machine's memory bandwidth;
/// collectives and hops as the constants that `ringmaster tune` has measured make of the runtime's own schedules,
/// the cheapest of a kind.
std::unique_ptr<cost_model> measured_costs(const language_model& trained, const cost_constants& network,
                                           double memory_bandwidth, const parallel_setting& how);

} // namespace ringmaster::training
