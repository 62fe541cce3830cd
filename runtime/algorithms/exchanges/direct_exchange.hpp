#pragma once

#include "runtime/algorithms/parts/algorithm_cost.hpp"

namespace ringmaster {

// For ranks in one address space: every block goes directly to its receiver, all in one round. A receiver reads it from
// the sender's memory, and no rank copies anything for others. The order of a rank's sends and receives makes
// it come through without clashes over ports, too: rank r starts with r+1, r+2, ... and receives from r-1, r-2, ...
//
// Source: R. L. Graham, G. Shipman: MPI support for multi-core architectures: optimized shared memory collectives.
// EuroPVM/MPI 2008, LNCS 5205.

inline constexpr std::string_view direct_all_gather_cost = "one round; each rank sends its block N-1 times";
inline constexpr std::string_view direct_all_to_all_cost = "one round; each rank sends every block but its own";
inline constexpr std::string_view direct_gather_cost = "one round; the root receives every block but its own";
inline constexpr std::string_view direct_scatter_cost = "one round; the root sends every block but its own";
inline constexpr std::string_view direct_broadcast_cost = "one round; the root sends the whole N-1 times";

/// Cost: one round; a rank sends its block N-1 times, and receives every block but its own.
schedule plan_direct_all_gather(const plan_request& request);
algorithm_cost cost_of_direct_all_gather(const plan_request& request);

/// Cost: one round; a rank sends, and receives, every block but its own.
schedule plan_direct_all_to_all(const plan_request& request);
algorithm_cost cost_of_direct_all_to_all(const plan_request& request);

/// Cost: one round; the root receives every block but its own.
schedule plan_direct_gather(const plan_request& request);
algorithm_cost cost_of_direct_gather(const plan_request& request);

/// Cost: one round; the root sends every block but its own.
schedule plan_direct_scatter(const plan_request& request);
algorithm_cost cost_of_direct_scatter(const plan_request& request);

/// Cost: one round; the root sends the whole N-1 times.
schedule plan_direct_broadcast(const plan_request& request);
algorithm_cost cost_of_direct_broadcast(const plan_request& request);

} // namespace ringmaster
