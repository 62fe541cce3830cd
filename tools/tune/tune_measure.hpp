#pragma once

#include "actors/configuration/configuration.hpp"
#include "client/client.hpp"
#include "tools/clients/rank_layout.hpp"
#include "tools/tune/tune_fit.hpp"

#include <functional>

namespace ringmaster {

/// How carefully it is measured.
struct tune_effort {
  uint32_t repeats = 3;           ///< Of the whole, one after the other: the median of their medians counts.
  uint32_t samples = 5;           ///< Of each point in a repeat, whose median is taken.
  uint64_t bytes_max = 16u << 20; ///< Of one rank, at the most.
};

/// Told which part of the whole has been measured.
using tune_watch = std::function<void(double part)>;

/// What collectives take on 2 and 8 devices of this process, from 8 B up: all_reduce by ring, tree, halving_doubling,
/// naive and direct, and broadcast by tree, naive and direct; and what little trainings communicate. The journal is
/// kept in memory. Errors: those of the cluster; `failed` where a result was wrong.
caf::expected<std::vector<cost_sample>> measure_in_process(configuration& cfg, const tune_effort& effort,
                                                           const tune_watch& watch);

/// All_reduces by every algorithm between 2 and 4 node processes of a device each, and 2 of 4 each, in messages over
/// the loopback interface: `caf-run`, which lies beside this program, starts them and `ringmaster bench`. A cluster
/// that has not ended in two minutes is ended. Errors: what the cluster's processes said.
caf::expected<std::vector<cost_sample>> measure_between_processes(const tune_effort& effort, const tune_watch& watch);

/// The groups of a joined cluster's ranks that are measured: two, of different nodes if there are, one of each node,
/// and all of them; each once. `share_memory`: the cluster does, so that a host is a host and not a process.
struct tuned_group {
  std::vector<device_id> devices; ///< In rank order.
  std::vector<uint32_t> hosts;    ///< Of them, as `plan_request` has it.
};
std::vector<tuned_group> groups_of(const rank_layout& ranks, bool share_memory);

/// The same all_reduces on the cluster that the user has joined, in those groups of its ranks. Errors:
/// those of the cluster; `failed` where a result was wrong.
caf::expected<std::vector<cost_sample>> measure_joined(client& user, const rank_layout& ranks, bool share_memory,
                                                       const tune_effort& effort, const tune_watch& watch);

} // namespace ringmaster
