#pragma once

#include "runtime/schedule/collective.hpp"

namespace ringmaster {

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

/// Gather along a binomial tree. Ranks are counted from the root: v = rank - root modulo N. In round k every v whose
/// lowest set bit is k hands what it has, the blocks of v, v+1, ..., v + 2^k - 1 as far as they exist, to v - 2^k, and
/// has done its part. A rank with a subtree collects it in scratch, in the tree's order, and sends it as one block; one
/// without sends its input. The root collects in its output, in the order of the ranks; the one subtree that goes
/// from rank N-1 on to rank 0 comes to it as two blocks.
///
/// Cost: ceil(log2 N) rounds. As many elements come to the root as with every gather, in log N messages in place of
/// N-1, for which most blocks travel several times.
///
/// Source: E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn: Collective communication: theory, practice, and
/// experience. Concurrency and Computation: Practice and Experience 19(13), 2007.
schedule plan_tree_gather(const plan_request& request);
algorithm_cost cost_of_tree_gather(const plan_request& request);

/// Scatter along a binomial tree: the gather with time reversed. In round k the distance is 2^(ceil(log2 N) - 1 - k).
///
/// Cost and source: as of the gather.
schedule plan_tree_scatter(const plan_request& request);
algorithm_cost cost_of_tree_scatter(const plan_request& request);

} // namespace ringmaster
