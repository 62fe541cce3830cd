#pragma once

#include "actors/configuration/configuration.hpp"
#include "client/client.hpp"
#include "tools/clients/free_devices.hpp"
#include "tools/tune/tune_fit.hpp"

#include <functional>

namespace ringmaster {

/// The effort of a measurement.
struct tune_effort {
  uint32_t repeats = 3;           ///< Of the whole measurement; the median of their medians counts.
  uint32_t samples = 5;           ///< Of each point in a repeat; their median counts.
  uint64_t bytes_max = 16u << 20; ///< The maximum of a rank.
};

/// Called with the part of the measurement that is done.
using tune_watch = std::function<void(double part)>;

/// Measures on 2 and 8 devices of this process, from 8 B up: all_reduce by ring, tree, halving_doubling, naive and
/// direct, broadcast by tree, naive and direct, and the communication of small trainings. The journal is kept in
/// memory. Errors: as of the cluster; `aborted` if a result is wrong.
caf::expected<std::vector<cost_sample>> measure_in_process(configuration& cfg, const tune_effort& effort,
                                                           const tune_watch& watch);

/// Measures all_reduces by every algorithm between 2 and 4 node processes of a device each, and 2 of 4 devices each, in
/// messages over the loopback interface. `caf-run`, beside this program, starts them and `ringmaster bench`. A cluster
/// is killed after two minutes. Errors: of the cluster's processes.
caf::expected<std::vector<cost_sample>> measure_between_processes(const tune_effort& effort, const tune_watch& watch);

/// A group of a joined cluster's ranks to measure.
struct tuned_group {
  std::vector<device_id> devices; ///< In rank order.
  std::vector<uint32_t> hosts;    ///< As in `plan_request`.
};
/// Two ranks, of different nodes if possible, one rank of each node, and all ranks; no group twice. `share_memory`: the
/// processes of a host share memory, so levels are hosts and not processes.
std::vector<tuned_group> groups_of(const rank_layout& ranks, bool share_memory);

/// Measures the same all_reduces on a joined cluster, in those groups. Errors: as of the cluster; `aborted` if a result
/// is wrong.
caf::expected<std::vector<cost_sample>> measure_joined(client& user, const rank_layout& ranks, bool share_memory,
                                                       const tune_effort& effort, const tune_watch& watch);

} // namespace ringmaster
