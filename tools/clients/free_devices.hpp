#pragma once

#include "client/client.hpp"
#include "messages/cluster.pb.h"
#include "messages/wire_ids.hpp"

#include <cstdio>
#include <string>
#include <vector>

namespace ringmaster {

/// Devices without a communicator, by ascending id.
std::vector<const proto::ClusterInfo::Device*> free_devices(const proto::ClusterInfo& cluster);

/// The memory of the device with the least, in bytes; UINT64_MAX for no device.
uint64_t least_memory_bytes(const std::vector<const proto::ClusterInfo::Device*>& devices);

/// Errors: too_few_devices if fewer are free, with the communicators that have the others. `who`: "bench".
caf::error check_free(const std::string& who, uint64_t wanted, const proto::ClusterInfo& cluster);

/// Waits for `patience` until `wanted` devices are free, and prints to `err` that it waits. Errors: as of `check_free`.
caf::expected<proto::ClusterInfo> await_free(client& user, const std::string& who, uint64_t wanted,
                                             caf::timespan patience, std::FILE* err);

/// Where a communicator's ranks are: the device, node and host of each, at the time of the query.
class rank_layout {
public:
  struct place {
    device_id device;
    node_id node = {};
    std::string node_name = {}, host = {}; ///< Empty: the node has left, or the name is unknown.
    uint64_t pid = 0;
  };

  rank_layout(const gpu_sim::CommInitResponse& group, const proto::ClusterInfo& cluster);

  /// In rank order.
  const std::vector<place>& ranks() const noexcept { return ranks_; }
  /// "8 ranks: 4 nodes of 2 on 1 host"
  std::string summary() const;
  /// A line for each node, in the order of their first ranks: "ranks 0-1, 4 on node-1, host lab, process 101".
  std::vector<std::string> nodes() const;
  /// Whether every rank is on this host.
  bool all_on(const std::string& host) const;

private:
  std::vector<place> ranks_;
};

} // namespace ringmaster
