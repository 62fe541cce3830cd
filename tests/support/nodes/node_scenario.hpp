#pragma once

#include "tests/support/nodes/simulated_nodes.hpp"
#include "tests/support/trials/collective_trial.hpp"

#include <string>
#include <vector>

namespace ringmaster::test {

/// Something that goes wrong in a cluster of several processes.
struct mishap {
  enum class kind {
    pause,        ///< Process `a` is paused.
    stall,        ///< Nothing comes from `a` to `b` or back; it comes later.
    cut,          ///< Their connections break, and no new one is made; `b` learns later than `a` by `lag`.
    kill,         ///< Process `a` is killed.
    device_fault, ///< The device of rank `a` misbehaves.
    restart,      ///< The coordinator's process is killed, and started again after `lasts`, or its successor elected.
    device_death, ///< It dies by itself, in a process that lives on: others learn of it later.
    store_cut     ///< The coordinator does not reach etcd.
  };

  kind what = kind::pause;
  size_t a = 0;
  size_t b = 0;
  caf::timespan when{0};  ///< After the first call.
  caf::timespan lasts{0}; ///< 0: for good.
  caf::timespan lag{0};
  proto::FaultRequest fault{};
};

/// What a seed plays on nodes: several operations on one communicator, and what goes wrong meanwhile.
struct node_scenario {
  nodes_options cluster;
  uint32_t ranks = 1;
  std::vector<collective_options> operations;
  std::vector<caf::timespan> pauses; ///< Between their calls, by the second one's index.
  bool in_group = false;
  caf::timespan apart{0}; ///< 0: the host calls for all ranks; else each calls for itself, up to so much later.
  std::vector<mishap> mishaps;

  bool ranks_call() const { return apart.count() > 0; }
  /// Whether nothing may be lost by it: processes and ways pause for less than `suspicion.pause-max` in all, and
  /// nodes lose no one but each other.
  bool is_mild() const;
  /// Whether devices may be lost by it, even all.
  bool may_lose_devices() const;
  /// Whether the node of this process may end by it.
  bool may_end(size_t process) const;
  std::string text() const;
};

node_scenario node_scenario_of(uint64_t seed);

/// The same operations, while the coordinator is restarted, once or several times, and in some seeds devices and nodes
/// die meanwhile.
node_scenario restart_scenario_of(uint64_t seed);

/// The same operations with two coordinators, of which one leads: it is paused, killed or cut off, once or twice, its
/// successor is elected, and the former goes on; orders of it may still be under way. In some seeds devices and nodes
/// die meanwhile, or devices hang or are slow.
node_scenario leader_scenario_of(uint64_t seed);

/// Has all of it happen. `devices`: by rank.
void let_happen(simulated_nodes& cluster, const node_scenario& x, const std::vector<uint64_t>& devices);

} // namespace ringmaster::test
