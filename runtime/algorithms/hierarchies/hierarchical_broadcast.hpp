#pragma once

#include "runtime/algorithms/parts/algorithm_cost.hpp"

#include <string_view>

namespace ringmaster {

inline constexpr std::string_view hierarchical_broadcast_cost
  = "H-2+P rounds across H hosts for P pieces a shard, S within one of S ranks; each host sends count elements across";

/// Broadcast on two levels. *Scatter within*, 1 round, where the root is not alone on its host: it sends each rank
/// there its shard. *Across*, H-2+P rounds: the owners of a shard, one on each host, are a pipelined chain (chain.hpp)
/// from the root's host on, in P pieces. *All-gather within*, S-1 rounds: the ranks of a host meet in pairs and send
/// each other their shards; no rank sends anything to the root. Shards are those of `host_shards`: hosts may have
/// different numbers of ranks.
///
/// Cost: 1 + H-2+P + S-1 rounds. Across, every host but the last sends count elements, shared by its ranks: a chain of
/// all ranks sends as many, in S times the rounds for pieces of one size. On one host the scatter and the all-gather
/// are left; where each rank has a host of its own, the chain.
///
/// Sources: L. P. Huse: Collective communication on dedicated clusters of workstations. EuroPVM/MPI 1999, LNCS 1697
/// (two levels). M. Barnett et al., as scatter_all_gather.hpp has it, for the shards.
schedule plan_hierarchical_broadcast(const plan_request& request);
algorithm_cost cost_of_hierarchical_broadcast(const plan_request& request);

} // namespace ringmaster
