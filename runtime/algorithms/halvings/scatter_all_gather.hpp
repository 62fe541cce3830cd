#pragma once

#include "runtime/schedule/collective.hpp"

namespace ringmaster {

inline constexpr std::string_view scatter_all_gather_broadcast_cost
  = "2 ceil(log2 N) rounds; the root sends at most 2(N-1)/N x count elements, where a tree sends log2 N x count";

/// Van de Geijn's broadcast: the root scatters N nearly equal blocks, and an all-gather makes them whole everywhere.
/// Ranks and blocks are counted from the root.
///
/// *Scatter* along a binomial tree, ceil(log2 N) rounds: who has the blocks of a group of ranks sends those of its
/// upper half to the first rank there. *All-gather* by doubling, ceil(log2 N) rounds: Bruck's (bruck.hpp), which wants
/// no power of two. Every block is received where it belongs in the output; the root gets nothing back. Van de Geijn
/// takes a ring for the second part: N-1 rounds, and the same elements.
///
/// Cost: 2 ceil(log2 N) rounds; the root, which has most to send, sends every block but its own in each part.
///
/// Source: M. Barnett, L. Shuler, S. Gupta, D. G. Payne, R. van de Geijn, J. Watts: Interprocessor collective
/// communication library (InterCom). Scalable High Performance Computing Conference 1994.
schedule plan_scatter_all_gather_broadcast(const plan_request& request);
algorithm_cost cost_of_scatter_all_gather_broadcast(const plan_request& request);

} // namespace ringmaster
