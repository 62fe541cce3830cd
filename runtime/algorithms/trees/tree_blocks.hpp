#pragma once

#include "runtime/schedule/collective.hpp"

namespace ringmaster {

inline constexpr std::string_view tree_gather_cost
  = "ceil(log2 N) rounds; the root receives every block but its own, no other rank more than half of them";
inline constexpr std::string_view tree_scatter_cost
  = "ceil(log2 N) rounds; the root sends every block but its own, no other rank more than half of them";

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
