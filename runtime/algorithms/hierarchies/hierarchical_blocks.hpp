#pragma once

#include "runtime/schedule/collective.hpp"

#include <string_view>

namespace ringmaster {

inline constexpr std::string_view hierarchical_all_gather_cost
  = "H-1 rounds across H hosts, S-1 within one of S ranks; a host receives every block but its own from across, once";
inline constexpr std::string_view hierarchical_all_to_all_cost
  = "S-1 rounds within a host of S ranks, H-1 across H hosts; a rank sends H-1 messages across, not N-S";

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

} // namespace ringmaster
