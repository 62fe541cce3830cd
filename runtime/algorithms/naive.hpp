#pragma once

#include "runtime/schedule.hpp"

namespace ringmaster {

inline constexpr std::string_view naive_all_reduce_cost
  = "N rounds; rank 0 receives (N-1) x count elements and sends as many, the others count each way";

/// All-reduce as one writes it first: rank 0 collects everything and tells everybody.
///
/// *Gather*, N-1 rounds: rank 0 takes the inputs of ranks 1, 2, ..., N-1 one after the other and adds each to its
/// sum, which arises in its output. *Broadcast*, one round: it sends the sum to all.
///
/// The sum is taken in rank order, ((x0 + x1) + x2) + ..., as a plain loop would: the reference for the others.
///
/// Cost: N rounds. Rank 0's link carries (N-1) x count elements in and as many out, while all others wait: N/2 times
/// what the ring needs. It wins where the count is small and a round's latency is everything.
///
/// Source: a gather with reduction to rank 0 followed by a broadcast from it, with flat trees, as MPI defines
/// MPI_Allreduce by MPI_Reduce and MPI_Bcast.
schedule plan_naive_all_reduce(const plan_request& request);
algorithm_cost cost_of_naive_all_reduce(const plan_request& request);

} // namespace ringmaster
