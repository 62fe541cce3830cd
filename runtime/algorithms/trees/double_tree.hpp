#pragma once

#include "runtime/algorithms/parts/algorithm_cost.hpp"

namespace ringmaster {

inline constexpr std::string_view double_tree_broadcast_cost
  = "at most 2(ceil(log2 N) + P - 1) rounds for P pieces a half; each rank sends about count elements";
inline constexpr std::string_view double_tree_reduce_cost
  = "at most 2(ceil(log2 N) + P - 1) rounds for P pieces a half; each rank sends count elements";
inline constexpr std::string_view double_tree_all_reduce_cost
  = "at most 4(ceil(log2 N) + P - 1) rounds for P pieces a half; each rank sends about 2 x count elements";

// The double binary tree. In one binary tree half of the ranks are leaves, which send nothing on, while an inner
// rank has to send everything twice. So there are two trees over the ranks but the root, such that no rank is inside
// both, with the root above them; one half of the elements takes the one, the other half the other. An inner rank
// sends its half twice and the other half never: each rank sends and receives about count elements, as in the
// pipelined chain, but the way to the last is as short as in a tree.
//
// Each half is cut into P pieces of request.chunk elements (0: default_chunk, 32768), which follow each other two
// rounds apart. The links are used alternately in even and odd rounds (see two_trees.hpp), so that in one round no
// rank sends or receives more than one piece.
//
// The ranks are numbered from the root, (rank - root) mod N. D is the last round in which a rank receives a first
// piece, at most 2 ceil(log2 N) - 1. Where the halves differ by one element, the first is the larger.
//
// Sources: P. Sanders, J. Speck, J. L. Traeff: Two-tree algorithms for full bandwidth broadcast, reduction and scan.
// Parallel Computing 35(12), 2009. All-reduce: S. Jeaugey: Massively scale your deep learning training with NCCL 2.4.
// NVIDIA, 2019.

/// Broadcast: the root sends the pieces of both halves alternately; each rank hands on what it received in the round
/// before or in the one before that.
///
/// Cost: D + 2P - 1 rounds, a latency and a piece each. An inner rank with two children sends 2P messages of its half,
/// the root 2P messages with count elements; each rank but the root receives as many.
schedule plan_double_tree_broadcast(const plan_request& request);
algorithm_cost cost_of_double_tree_broadcast(const plan_request& request);

/// Reduce: the links of the broadcast the other way and in the opposite order. An inner rank adds to its own input what
/// its two children bring, the one whose pieces come first first. The sums arise in the root's output and elsewhere in
/// scratch, two pieces of it.
///
/// Cost: D + 2P - 1 rounds, a latency and a piece each. Each rank but the root sends 2P messages and count elements;
/// an inner rank receives up to 2P of its half, the root 2P with count elements.
schedule plan_double_tree_reduce(const plan_request& request);
algorithm_cost cost_of_double_tree_reduce(const plan_request& request);

/// All-reduce: the reduction to rank 0, then the broadcast from it. One sum, of which all get a copy: the same bits on
/// every rank.
///
/// Cost: 2(D + 2P - 1) rounds, a latency and a piece each. Each rank sends, and receives, about 2 x count elements.
schedule plan_double_tree_all_reduce(const plan_request& request);
algorithm_cost cost_of_double_tree_all_reduce(const plan_request& request);

} // namespace ringmaster
