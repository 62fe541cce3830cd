#pragma once

#include "runtime/schedule.hpp"

namespace ringmaster {

inline constexpr std::string_view ring_all_reduce_cost
  = "2(N-1) rounds; each rank sends 2(N-1)/N x count elements, which no algorithm can undercut";

/// All-reduce around a ring: each rank talks to its two neighbours only, always sending to rank + 1 and receiving
/// from rank - 1.
///
/// The elements are cut into N blocks. *Reduce-scatter*, N-1 rounds: every block sets out from the rank of its own
/// number and goes once around; each rank that it meets adds its own input to it and passes the sum on in the next
/// round. In every round each rank sends one block and receives another, so all links are busy all the time. When it
/// ends, rank r holds the whole sum of block r+1. *All-gather*, N-1 rounds: the whole blocks go around once more, and
/// each rank keeps a copy of what it passes on.
///
/// The first block is sent from the input and every later one from the output, where the sums arise, so no rank ever
/// copies anything. Block b is summed in the order b, b+1, ..., N-1, 0, ..., b-1: the same bits on every rank and in
/// every run, but not those of another algorithm.
///
/// Cost: 2(N-1) rounds. A rank sends, and receives, every block twice but for two that it sends once: about
/// 2(N-1)/N x count elements, at most 2(N-1) x ceil(count/N). Blocks without elements (count < N) are not sent; their
/// rounds stay.
///
/// Source: P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations. Journal of
/// Parallel and Distributed Computing 69(2), 2009.
schedule plan_ring_all_reduce(const plan_request& request);
algorithm_cost cost_of_ring_all_reduce(const plan_request& request);

} // namespace ringmaster
