#pragma once

#include "tests/support/actor_state.hpp"
#include "tests/support/simulated_client.hpp"

namespace ringmaster::test {

/// Adds the node "leaver" with one device to a cluster, which then has that many, and lets it be drained.
inline void add_leaver(simulated_cluster& to, uint32_t devices) {
  state_of<coordinator_state>(to.host).options.own_nodes_may_end = true;
  node_options settings;
  settings.name = "leaver";
  settings.devices = 1;
  settings.device = to.device_settings;
  settings.coordinator = to.host;
  to.host_node = to.sys.spawn(node, settings);
  proto::ClusterInfoRequest all;
  all.set_min_devices(devices);
  all.set_timeout_ns(1'000'000'000);
  REQUIRE(to.ask_coordinator<proto::ClusterInfo>(all).devices_size() == static_cast<int>(devices));
}

inline answer_ptr<proto::DrainResponse> drain(simulated_cluster& cluster, simulated_client& by,
                                              const std::string& name = "leaver",
                                              caf::timespan limit = std::chrono::seconds{30}) {
  proto::DrainRequest x;
  x.set_node(name);
  x.set_timeout_ns(static_cast<uint64_t>(limit.count()));
  return by.ask<proto::DrainResponse>(cluster.host, x);
}

} // namespace ringmaster::test
