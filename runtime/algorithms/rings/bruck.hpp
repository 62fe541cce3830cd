#pragma once

#include "runtime/algorithms/parts/cost_counter.hpp"
#include "runtime/schedule/blocks.hpp"
#include "runtime/schedule/schedule_builder.hpp"

namespace ringmaster {

inline constexpr std::string_view bruck_all_gather_cost
  = "ceil(log2 N) rounds and every block but one, for every N: no algorithm can undercut either";
inline constexpr std::string_view bruck_all_to_all_cost
  = "ceil(log2 N) rounds and a local one; each rank sends about (N/2) log2 N blocks, in log2 N messages";

/// Bruck's all-gather: after k rounds rank r has the 2^k blocks r, r+1, ..., modulo N. In round k it sends them to rank
/// r - 2^k, in the last round only those that are missing there, and receives the same number from r + 2^k.
///
/// Bruck keeps the blocks in this order, the rank's own first, and turns them round in the end. Here they are received
/// where they belong, so nothing is moved twice; a run that goes past block N-1 is sent as two messages.
///
/// Cost: ceil(log2 N) rounds; a rank sends every block but one. The best there is for every N in both.
///
/// Source: J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient algorithms for all-to-all communications
/// in multiport message-passing systems. IEEE Transactions on Parallel and Distributed Systems 8(11), 1997.
schedule plan_bruck_all_gather(const plan_request& request);
algorithm_cost cost_of_bruck_all_gather(const plan_request& request);

/// Bruck's all-to-all, for blocks of one size. Slot j of rank r is what has j ranks to go from here, at first the block
/// for rank r+j. In round k the slots whose number has bit k go on to rank r + 2^k, as one message: they are packed in
/// scratch, and come into the same slots there. A slot has arrived after the highest bit of its number, and came from
/// rank r-j.
///
/// Bruck unpacks what came in. Here every round's message stays where it came, and the next one that takes a slot along
/// packs it from there; in a last, local round all slots are copied to the output. A rank thus copies every slot once a
/// hop, and needs scratch for about (N/2)(1 + log2 N) blocks: small ones, for which this algorithm is.
///
/// Cost: ceil(log2 N) rounds and a local one; each rank sends (N/2) log2 N blocks (N a power of two), where the
/// pairwise exchange sends N-1 in as many rounds and messages.
///
/// Source: as above.
schedule plan_bruck_all_to_all(const plan_request& request);
algorithm_cost cost_of_bruck_all_to_all(const plan_request& request);
/// Errors: invalid_argument for counts by rank.
caf::error check_bruck_all_to_all(const plan_request& request);

/// The all-gather among ranks counted from `root`, `round` being its first, over `cut`, one block for each of them in
/// this order and all an output's whole. The rank's own is at `own`. `to_root`: the root wants the blocks, too.
void gather_all(schedule_builder& plan, uint32_t round, const blocks& cut, block_range own, uint32_t root,
                bool to_root);
void count_all_gather(cost_counter& counter, const blocks& cut, uint32_t root, bool to_root);

} // namespace ringmaster
