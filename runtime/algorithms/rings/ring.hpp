#pragma once

#include "runtime/schedule/collective.hpp"

namespace ringmaster {

inline constexpr std::string_view ring_all_reduce_cost
  = "2(N-1) rounds; each rank sends 2(N-1)/N x count elements, which no algorithm can undercut";
inline constexpr std::string_view ring_reduce_scatter_cost
  = "N-1 rounds; each rank sends every block but one, which no algorithm can undercut";
inline constexpr std::string_view ring_all_gather_cost
  = "N-1 rounds; each rank sends every block but one, which no algorithm can undercut";

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

/// The first phase alone. Block b sets out from rank b+1, so that it is whole on rank b. The sums that only pass
/// through have no place in the output: they live in two slots of scratch, one filled while the other is sent.
///
/// Cost: N-1 rounds; a rank sends every block but its own. With blocks of different sizes a round takes as long as the
/// largest block, wherever it is.
schedule plan_ring_reduce_scatter(const plan_request& request);
algorithm_cost cost_of_ring_reduce_scatter(const plan_request& request);

/// The second phase alone: block b sets out from rank b. A rank's own block is copied into its output in round 0.
///
/// Cost: N-1 rounds; a rank sends every block but the next rank's.
schedule plan_ring_all_gather(const plan_request& request);
algorithm_cost cost_of_ring_all_gather(const plan_request& request);

} // namespace ringmaster
