#pragma once

#include "runtime/schedule/collective.hpp"

namespace ringmaster {

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

inline constexpr std::string_view direct_reduce_scatter_cost
  = "one round; each rank sends every block but its own, and reduces its own in rank order";
inline constexpr std::string_view direct_all_reduce_cost
  = "2 rounds; each rank sends about 2(N-1)/N x count elements, and reduces its block in rank order";
inline constexpr std::string_view direct_reduce_cost
  = "2 rounds; each rank sends count elements, and reduces its block in rank order";
inline constexpr std::string_view one_shot_all_reduce_cost
  = "one round; each rank sends its whole input N-1 times, and reduces all in rank order";

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

} // namespace ringmaster
