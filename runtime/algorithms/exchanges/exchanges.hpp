#pragma once

#include "runtime/schedule/collective.hpp"

namespace ringmaster {

// For ranks in one address space: every block goes directly to its receiver, all in one round. A receiver reads it from
// the sender's memory, and no rank copies anything for others. The order of a rank's sends and receives makes
// it come through without clashes over ports, too: rank r starts with r+1, r+2, ... and receives from r-1, r-2, ...
//
// Source: R. L. Graham, G. Shipman: MPI support for multi-core architectures: optimized shared memory collectives.
// EuroPVM/MPI 2008, LNCS 5205.

/// Costs: as in the table of registry.cpp.
schedule plan_direct_all_gather(const plan_request& request);
algorithm_cost cost_of_direct_all_gather(const plan_request& request);
schedule plan_direct_all_to_all(const plan_request& request);
algorithm_cost cost_of_direct_all_to_all(const plan_request& request);
schedule plan_direct_gather(const plan_request& request);
algorithm_cost cost_of_direct_gather(const plan_request& request);
schedule plan_direct_scatter(const plan_request& request);
algorithm_cost cost_of_direct_scatter(const plan_request& request);
schedule plan_direct_broadcast(const plan_request& request);
algorithm_cost cost_of_direct_broadcast(const plan_request& request);

// Reductions for ranks in one address space. Every rank reduces one block, its own, straight out of all the others'
// inputs: in one round it receives that block from rank 0, 1, 2, ... in a chain of steps of which each starts when the
// one before it has ended. Every element is thus reduced on one rank, in rank order, ((x0 + x1) + x2) + ..., with the
// bits of a plain loop, and all ranks share the work.
//
// On a network this would be a poor choice: all ranks want rank 0's block first. They come through its port one after
// the other, then follow each other from port to port, and each hop has a latency of its own: N-1 latencies and 2N-3
// blocks in a row, where all have one size.
//
// Source: R. L. Graham, G. Shipman: MPI support for multi-core architectures: optimized shared memory collectives.
// EuroPVM/MPI 2008, LNCS 5205. The two all-reduces are what NVIDIA's TensorRT-LLM calls two-shot and one-shot.

/// Cost: one round; a rank sends every block but its own, and receives N-1 of its own size.
schedule plan_direct_reduce_scatter(const plan_request& request);
algorithm_cost cost_of_direct_reduce_scatter(const plan_request& request);

/// Reduce-scatter over N nearly equal blocks, which arise in the output; in a second round each rank sends its block to
/// all others.
///
/// Cost: 2 rounds; a rank sends every block but its own, and its own N-1 times.
schedule plan_direct_all_reduce(const plan_request& request);
algorithm_cost cost_of_direct_all_reduce(const plan_request& request);

/// Reduce-scatter over N nearly equal blocks, which arise in scratch, the root's in its output; in a second round all
/// send theirs to the root.
///
/// Cost: 2 rounds; a rank other than the root sends count elements.
schedule plan_direct_reduce(const plan_request& request);
algorithm_cost cost_of_direct_reduce(const plan_request& request);

/// All-reduce of few elements: every rank reduces the whole, each for itself, in the same order.
///
/// Cost: one round; a rank sends, and receives, (N-1) x count elements.
schedule plan_one_shot_all_reduce(const plan_request& request);
algorithm_cost cost_of_one_shot_all_reduce(const plan_request& request);

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

// The simplest blocked collectives: one rank serves the others one after the other. The baseline of the other
// algorithms, and the right choice for few ranks or few elements.
//
// Source: the definitions of the collectives in the MPI standard, read as loops. All-to-all has no rank in the middle:
// as a loop over all peers it is the algorithm `direct`, which stands under both names.

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

/// Send and receive, directly: in the one round there is, the root sends its input, and the peer receives it into its
/// output. The others have nothing to do.
///
/// Cost: 1 round, one message of count elements.
///
/// Source: MPI_Send and MPI_Recv, MPI: A Message-Passing Interface Standard, 1994.
schedule plan_direct_send_recv(const plan_request& request);
algorithm_cost cost_of_direct_send_recv(const plan_request& request);

} // namespace ringmaster
