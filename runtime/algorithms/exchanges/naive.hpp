#pragma once

#include "runtime/algorithms/parts/algorithm_cost.hpp"

namespace ringmaster {

inline constexpr std::string_view naive_all_reduce_cost
  = "N rounds; rank 0 receives (N-1) x count elements and sends as many, the others count each way";
inline constexpr std::string_view naive_broadcast_cost = "1 round; the root sends (N-1) x count elements";
inline constexpr std::string_view naive_reduce_cost = "N-1 rounds; the root receives (N-1) x count elements";
inline constexpr std::string_view naive_barrier_cost = "2 rounds; rank 0 receives N-1 tokens and sends as many";

/// The simplest all-reduce: rank 0 collects all inputs and sends the sum to all ranks.
///
/// *Gather*, N-1 rounds: rank 0 takes the inputs of ranks 1, 2, ..., N-1 one after the other and adds each to its
/// sum, which is computed in its output. *Broadcast*, one round: it sends the sum to all.
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

/// Broadcast with a flat tree: in the one round there is, the root sends its input to every other rank, and copies it
/// to its own output.
///
/// Cost: 1 round and one latency. The root sends N-1 messages and (N-1) x count elements, one after the other through
/// its one port; no other rank that has the data helps.
schedule plan_naive_broadcast(const plan_request& request);
algorithm_cost cost_of_naive_broadcast(const plan_request& request);

/// Reduce with a flat tree: the root takes the inputs of the others in rank order, one a round, and adds its own when
/// its turn comes. For every root the sum is ((x0 + x1) + x2) + ..., bit for bit that of the naive
/// all-reduce. A root from rank 2 on begins with a copy of x0 and adds its own input by a local step within the round
/// that brings its predecessor's.
///
/// Cost: N-1 rounds. The root receives N-1 messages and (N-1) x count elements; the others send count.
schedule plan_naive_reduce(const plan_request& request);
algorithm_cost cost_of_naive_reduce(const plan_request& request);

/// Barrier with a flat tree: every rank sends a token, one element of scratch, to rank 0, and when it has them all it
/// sends one to each.
///
/// Cost: 2 rounds; rank 0 receives N-1 tokens and sends as many. Its ports are the bottleneck: 2(N-1) tokens follow
/// each other.
schedule plan_naive_barrier(const plan_request& request);
algorithm_cost cost_of_naive_barrier(const plan_request& request);

} // namespace ringmaster
