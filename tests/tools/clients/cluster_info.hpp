#pragma once

#include "tools/clients/free_devices.hpp"

#include <string>
#include <vector>

namespace ringmaster::test {

/// `nodes` of two devices each, on one host; the devices have 64 MiB.
inline proto::ClusterInfo cluster_of(uint32_t nodes) {
  proto::ClusterInfo result;
  for (uint32_t i = 1; i <= nodes; ++i) {
    auto& node = *result.add_nodes();
    node.set_node_id(i);
    node.set_name("node-" + std::to_string(i));
    node.set_pid(100 + i);
    node.set_hostname("lab");
  }
  for (uint32_t i = 0; i < 2 * nodes; ++i) {
    auto& device = *result.add_devices();
    device.set_node_id(i / 2 + 1);
    device.mutable_metadata()->mutable_deviceid()->set_value(i + 1);
    device.mutable_metadata()->mutable_minmemaddr()->set_value(uint64_t{i + 1} << 40);
    device.mutable_metadata()->mutable_maxmemaddr()->set_value((uint64_t{i + 1} << 40) + (64u << 20));
  }
  return result;
}

/// Of a communicator of these devices.
inline rank_layout layout_of(const std::vector<uint64_t>& devices, const proto::ClusterInfo& cluster) {
  gpu_sim::CommInitResponse group;
  for (auto id : devices)
    group.add_devices()->mutable_deviceid()->set_value(id);
  return {group, cluster};
}

} // namespace ringmaster::test
