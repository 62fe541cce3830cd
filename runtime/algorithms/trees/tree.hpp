#pragma once

#include "runtime/algorithms/parts/algorithm_cost.hpp"

namespace ringmaster {

inline constexpr std::string_view tree_broadcast_cost
  = "ceil(log2 N) rounds; the root sends ceil(log2 N) x count elements";
inline constexpr std::string_view tree_reduce_cost
  = "ceil(log2 N) rounds; the root receives ceil(log2 N) x count elements, the others send count";
inline constexpr std::string_view tree_all_reduce_cost
  = "2 ceil(log2 N) rounds; rank 0 sends ceil(log2 N) x count elements and receives as many";
inline constexpr std::string_view tree_barrier_cost
  = "2 ceil(log2 N) rounds; rank 0 sends ceil(log2 N) tokens and receives as many";

// The binomial tree. The ranks are numbered from the root, v = (rank - root) mod N, and v's parent is v without its
// lowest set bit; so v has a child v + 2^k for each k below that bit (the root: for each k), as far as there are ranks.
// d = ceil(log2 N) is the tree's height and the number of the root's children.

/// Broadcast down the tree. In round t of d, each rank that has the data and is a multiple of 2^(d-t) sends it
/// 2^(d-1-t) further, so the number of those who have it doubles; the far half of the tree is served first.
///
/// Cost: d rounds, latencies and times count in a row. The root sends d messages of count elements.
///
/// Source: R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH.
/// International Journal of High Performance Computing Applications 19(1), 2005.
schedule plan_tree_broadcast(const plan_request& request);
algorithm_cost cost_of_tree_broadcast(const plan_request& request);

/// Reduce up the tree: the broadcast run backwards, near ranks first. A leaf sends its input. An inner rank adds what
/// its children bring, in the order v+1, v+2, v+4, ..., to its own input; the sum arises in the root's output and
/// elsewhere in scratch (count elements).
///
/// Cost: d rounds, latencies and times count in a row. The root receives d messages of count elements, and every
/// other rank sends one.
schedule plan_tree_reduce(const plan_request& request);
algorithm_cost cost_of_tree_reduce(const plan_request& request);

/// All-reduce: the reduction to rank 0, then the broadcast from it. All sums arise in outputs. There is one sum, and
/// every rank gets a copy of it: the same bits on every rank.
///
/// Cost: 2d rounds. Rank 0 sends and receives d messages of count elements.
schedule plan_tree_all_reduce(const plan_request& request);
algorithm_cost cost_of_tree_all_reduce(const plan_request& request);

/// Barrier: tokens, one element of scratch each, go up the tree as in the reduction and down as in the broadcast.
/// Rank 0 sends the first token down when the last has come up.
///
/// Cost: 2d rounds. Rank 0 sends and receives d tokens.
schedule plan_tree_barrier(const plan_request& request);
algorithm_cost cost_of_tree_barrier(const plan_request& request);

} // namespace ringmaster
