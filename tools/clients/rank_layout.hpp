#pragma once

#include "messages/cluster.pb.h"
#include "messages/wire_ids.hpp"

#include <string>
#include <vector>

namespace ringmaster {

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
