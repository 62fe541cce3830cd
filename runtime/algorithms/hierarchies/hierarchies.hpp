#pragma once

#include "runtime/schedule/collective.hpp"

#include <string_view>

namespace ringmaster {

/// All-gather on two levels. *Across*, H-1 rounds: a rank sends its block to its partner on each other host
/// (`host_map`), hosts meeting in pairs. *Within*, S-1 rounds: the ranks of a host meet in pairs and send each other
/// what they have: their own block, and those that came from across. Every block is received where it belongs.
///
/// Cost: H-1 + S-1 rounds. From across, a host receives every block but those of its own ranks once, as no algorithm
/// can undercut; in pairs, which is what is left on one level, S times.
///
/// Source: J. L. Träff: Efficient allgather for regular SMP-clusters. EuroPVM/MPI 2006, LNCS 4192.
schedule plan_hierarchical_all_gather(const plan_request& request);
algorithm_cost cost_of_hierarchical_all_gather(const plan_request& request);

/// All-to-all on two levels. *Within*, S-1 rounds: a rank hands each other one of its host what is for it, and what is
/// for those ranks of other hosts whose partner that one is. It lies in scratch, what is for one rank together, in the
/// order of the ranks it comes from. *Across*, H-1 rounds: each rank of a host sends what it holds for its partners on
/// another one, a message for each run of senders whose ranks follow each other: one where a host's ranks do.
///
/// Cost: S-1 + H-1 rounds. As many elements go across as in pairs, but in fewer and S times larger messages; a rank has
/// up to N-S blocks of each rank of its host in scratch, and all but what is for its own host goes within first. So it
/// is for small blocks, of which a message across takes longer than its bytes.
///
/// Sources: J. L. Träff, A. Rougier: MPI collectives and datatypes for hierarchical all-to-all communication. EuroMPI
/// 2014. NVIDIA: Doubling all2all performance with NVIDIA Collective Communication Library 2.12, 2022 (PXN).
schedule plan_hierarchical_all_to_all(const plan_request& request);
algorithm_cost cost_of_hierarchical_all_to_all(const plan_request& request);

/// Broadcast on two levels. *Scatter within*, 1 round, where the root is not alone on its host: it sends each rank
/// there its shard. *Across*, H-2+P rounds: the owners of a shard, one on each host, are a pipelined chain
/// from the root's host on, in P pieces. *All-gather within*, S-1 rounds: the ranks of a host meet in pairs and send
/// each other their shards; no rank sends anything to the root. Shards are those of `host_shards`: hosts may have
/// different numbers of ranks.
///
/// Cost: 1 + H-2+P + S-1 rounds. Across, every host but the last sends count elements, shared by its ranks: a chain of
/// all ranks sends as many, in S times the rounds for pieces of one size. On one host the scatter and the all-gather
/// are left; where each rank has a host of its own, the chain.
///
/// Sources: L. P. Huse: Collective communication on dedicated clusters of workstations. EuroPVM/MPI 1999, LNCS 1697
/// (two levels). M. Barnett et al., as halvings.hpp has it, for the shards.
schedule plan_hierarchical_broadcast(const plan_request& request);
algorithm_cost cost_of_hierarchical_broadcast(const plan_request& request);

/// All-reduce on two levels: within a host, then across, then within.
///
/// *Reduce-scatter within*, S-1 rounds: a host's ranks share the elements, a shard each, and meet in pairs; each sends
/// the others their shards of its input and adds what it gets to its own. *All-reduce across*, 2(H-1) rounds: the
/// owners of a shard, one on each host, are a ring of H. *All-gather within*, S-1 rounds: in pairs again.
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
