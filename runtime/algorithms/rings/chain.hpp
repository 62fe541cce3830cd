#pragma once

#include "runtime/schedule/collective.hpp"

namespace ringmaster {

inline constexpr std::string_view chain_broadcast_cost = "N-2+P rounds for P pieces; each rank sends count elements";
inline constexpr std::string_view chain_reduce_cost = "N-2+P rounds for P pieces; each rank sends count elements";
inline constexpr std::string_view chain_all_reduce_cost
  = "2(N-2+P) rounds for P pieces; each rank sends 2 x count elements";

// The pipelined chain. The ranks stand in a row that begins with the root: root, root + 1, ..., around to root - 1. The
// elements are cut into P pieces of request.chunk elements (0: default_chunk, 32768); the last may be shorter. While a
// rank hands one piece on it takes the next, so in the middle of a long transfer all links are busy.

/// Broadcast along the chain. In round t, the v-th rank of the row sends piece t - v, which came in the round before.
///
/// Cost: N-2+P rounds, a latency and a piece each. Each rank but the last sends P messages and count elements, which no
/// algorithm can undercut; the first piece needs N-1 rounds to the end of the row, so it takes P >> N to tell.
///
/// Source: J. Pjesivac-Grbovic, T. Angskun, G. Bosilca, G. Fagg, E. Gabriel, J. Dongarra: Performance analysis of MPI
/// collective operations. Cluster Computing 10(2), 2007 (the pipeline algorithm).
schedule plan_chain_broadcast(const plan_request& request);
algorithm_cost cost_of_chain_broadcast(const plan_request& request);

/// Reduce along the chain: the same backwards, from the last of the row to the root. Each rank adds its own input to a
/// piece before it hands it on: x0 + (x1 + (x2 + ...)), numbered from the root. The sums arise in the root's output and
/// elsewhere in scratch, two pieces of it.
///
/// Cost: N-2+P rounds, a latency and a piece each. Each rank but the root sends P messages and count elements.
schedule plan_chain_reduce(const plan_request& request);
algorithm_cost cost_of_chain_reduce(const plan_request& request);

/// All-reduce: the reduction to rank 0, then the broadcast back. One sum, of which all get a copy: the same bits on
/// every rank. To send the first pieces back while the last are still coming would not end sooner: in both directions
/// each inner rank's ports have 2P pieces to carry, and they are the bottleneck.
///
/// Cost: 2(N-2+P) rounds, a latency and a piece each. Each inner rank sends 2P messages and 2 x count elements.
schedule plan_chain_all_reduce(const plan_request& request);
algorithm_cost cost_of_chain_all_reduce(const plan_request& request);

} // namespace ringmaster
