#pragma once

#include "runtime/schedule/collective.hpp"

#include <string_view>

namespace ringmaster {

inline constexpr std::string_view hierarchical_all_reduce_cost
  = "2(H-1) rounds across H hosts, 2(S-1) within one of S ranks; a host sends 2(H-1)/H x count elements across";
inline constexpr std::string_view hierarchical_reduce_scatter_cost
  = "H-1 rounds across H hosts, S-1 within one of S ranks; a host sends every block but its own across, once";

/// All-reduce on two levels: within a host, then across, then within.
///
/// *Reduce-scatter within*, S-1 rounds: a host's ranks share the elements, a shard each, and meet in pairs; each sends
/// the others their shards of its input and adds what it gets to its own. *All-reduce across*, 2(H-1) rounds: the
/// owners of a shard, one on each host, are a ring (ring.hpp) of H. *All-gather within*, S-1 rounds: in pairs again.
///
/// Where hosts have different numbers of ranks, their shards have different bounds, and what is a ring's is a piece
/// between two of them (`host_shards`). So every rank of every host has its part in what goes across. On one host the
/// two phases within are left, and where each rank has a host of its own, the ring.
///
/// No rank copies anything: sums arise in the output.
///
/// Cost: 2(S-1) + 2(H-1) rounds, S being the ranks of the largest host. Across, a host sends and receives about
/// 2(H-1)/H x count elements, as no algorithm can undercut, where a flat one may send as much for each of its ranks.
///
/// Sources: X. Jia et al.: Highly scalable deep learning training system with mixed-precision: training ImageNet in
/// four minutes, 2018 (all-reduce within, across and within again). M. Cho, U. Finkler, M. Serrano, D. Kung, H. Hunter:
/// BlueConnect: decomposing all-reduce for deep learning on heterogeneous network hierarchy. MLSys 2019 (shards).
schedule plan_hierarchical_all_reduce(const plan_request& request);
algorithm_cost cost_of_hierarchical_all_reduce(const plan_request& request);

/// Reduce-scatter on two levels. *Within*, S-1 rounds: of what is for the ranks of other hosts, a rank collects the
/// sums for those whose partner it is (`host_map`), and of its own host's blocks its own one. *Across*, H-1 rounds: it
/// sends each of them its sum over the host, hosts meeting in pairs. Sums for others arise in scratch.
///
/// Cost: S-1 + H-1 rounds. Across, a host sends every block but those of its own ranks once; pairwise, which is what is
/// left on one level, sends them S times.
///
/// Source: as above.
schedule plan_hierarchical_reduce_scatter(const plan_request& request);
algorithm_cost cost_of_hierarchical_reduce_scatter(const plan_request& request);

} // namespace ringmaster
