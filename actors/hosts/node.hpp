#pragma once

#include "actors/devices/device.hpp"
#include "actors/hosts/supervisor.hpp"

namespace ringmaster {

struct node_options {
  std::string name;     ///< The coordinator may put a number behind it, so that it is this node's alone.
  std::string hostname; ///< Of the machine.
  uint64_t pid = 0;
  uint32_t devices = 0;
  device_options device;     ///< For each of them.
  uint32_t restarts_max = 5; ///< Of its devices, within `period`.
  caf::timespan period = std::chrono::seconds{10};
  caf::timespan join_limit = std::chrono::seconds{5};
  coordinator_actor coordinator; ///< Joins at once if valid; else when it is told to.
};

/// The state of a NODE: joins a coordinator, then starts a supervisor for its devices. A device that dies comes back as
/// a fresh one: a new id, empty memory, free for communicators to come.
///
///   idle --Adopt--> joining --answered--> hosting --coordinator down, supervisor down--> quits
class node_state {
public:
  static inline const char* name = "node";

  node_actor::pointer self = nullptr;
  node_options options;
  caf::actor devices; ///< Their supervisor.

  void join(const proto::Adopt& x);
  void host(node_id own, const std::vector<device_id>& wanted_ids);
  void meet(const proto::NodePeers& x);
  void on_down(const caf::down_msg& x);
};

node_actor::behavior_type node(node_actor::stateful_pointer<node_state> self, node_options options);

} // namespace ringmaster
