#pragma once

#include "runtime/schedule/collective.hpp"

namespace ringmaster {

inline constexpr std::string_view dissemination_barrier_cost = "ceil(log2 N) rounds; each rank sends a token in each";

/// Barrier without a root: in round k, rank r sends a token to rank r + 2^k and waits for the one from r - 2^k, around
/// the circle. A rank that ends round k knows of the 2^(k+1) ranks up to itself that they have come, since each token
/// is sent only after those of the rounds before were received. So it knows of all after ceil(log2 N) rounds, for
/// any N.
///
/// The tokens are elements of scratch: one is sent, the other received into, in each round.
///
/// Cost: ceil(log2 N) rounds, in each of which every rank sends one token and receives one. Half of the tree's.
///
/// Source: D. Hensgen, R. Finkel, U. Manber: Two algorithms for barrier synchronization. International Journal of
/// Parallel Programming 17(1), 1988.
schedule plan_dissemination_barrier(const plan_request& request);
algorithm_cost cost_of_dissemination_barrier(const plan_request& request);

} // namespace ringmaster
