#pragma once

#include "runtime/algorithms/parts/algorithm_cost.hpp"

namespace ringmaster {

// The simplest blocked collectives: one rank serves the others one after the other. The baseline of the other
// algorithms, and the right choice for few ranks or few elements.
//
// Source: the definitions of the collectives in the MPI standard, read as loops. All-to-all has no rank in the middle:
// as a loop over all peers it is the algorithm `direct`, which stands under both names.

inline constexpr std::string_view naive_reduce_scatter_cost
  = "N rounds; rank 0 receives N-1 whole inputs and sends every block but its own";
inline constexpr std::string_view naive_all_gather_cost
  = "N rounds; rank 0 receives every block but its own and sends the whole to N-1 ranks";
inline constexpr std::string_view naive_gather_cost = "N-1 rounds; the root receives every block but its own";
inline constexpr std::string_view naive_scatter_cost = "N-1 rounds; the root sends every block but its own";

/// Reduce-scatter: rank 0 takes the whole inputs of ranks 1, 2, ..., N-1 in N-1 rounds and adds each to its sum, which
/// arises in scratch. In one more round it sends each rank that one's block. The sum is taken in rank order.
///
/// Cost: N rounds. Rank 0's link carries N-1 whole inputs in, and every block but one out.
schedule plan_naive_reduce_scatter(const plan_request& request);
algorithm_cost cost_of_naive_reduce_scatter(const plan_request& request);

/// All-gather: rank 0 takes the blocks of ranks 1, 2, ..., N-1 in N-1 rounds, and in one more sends the whole to all.
///
/// Cost: N rounds. Rank 0's link carries N-1 blocks in, and N-1 times all blocks out.
schedule plan_naive_all_gather(const plan_request& request);
algorithm_cost cost_of_naive_all_gather(const plan_request& request);

/// Gather: the root takes the blocks of the other ranks, in their order, one a round.
///
/// Cost: N-1 rounds. The root's link carries N-1 blocks, as with every gather; each pays a latency of its own.
schedule plan_naive_gather(const plan_request& request);
algorithm_cost cost_of_naive_gather(const plan_request& request);

/// Scatter: the root sends the other ranks their blocks, in their order, one a round.
///
/// Cost: N-1 rounds. The root's link carries N-1 blocks, as with every scatter; each pays a latency of its own.
schedule plan_naive_scatter(const plan_request& request);
algorithm_cost cost_of_naive_scatter(const plan_request& request);

} // namespace ringmaster
