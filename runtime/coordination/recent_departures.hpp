#pragma once

#include "messages/cluster.pb.h"
#include "messages/ids.hpp"

#include <deque>
#include <string>

namespace ringmaster {

/// The nodes, devices and communicators that left the cluster or failed, oldest first: the latest 64. For status pages.
class recent_departures {
public:
  static constexpr size_t kept_max = 64;

  /// `when_ns`: wall clock.
  void add(proto::ClusterInfo::Gone what, uint64_t when_ns);
  /// The name of a node that departed; empty if it is not among the latest.
  std::string name_of(node_id node) const;
  /// Appends all to the answer.
  void write_to(proto::ClusterInfo& info) const;
  size_t size() const { return latest_.size(); }

private:
  std::deque<proto::ClusterInfo::Gone> latest_;
};

} // namespace ringmaster
