#pragma once

#include "messages/cluster.pb.h"
#include "messages/ids.hpp"

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ringmaster {

/// The nodes of `wanted` that are not there with all their devices.
std::set<std::string> missing_nodes(const proto::ClusterInfo& cluster, std::set<std::string> wanted);

/// All that there are, also those that have no device any more.
std::set<communicator_id> communicators_of(const proto::ClusterInfo& cluster);

// Words that several commands say of a cluster.

/// "communicator 2 (training by ddp)"; without its name where it has none.
std::string named_communicator(uint64_t id, const std::string& name);
/// "shrink"
std::string policy_text(proto::FailurePolicy x);
/// "01:04:00"
std::string time_text(uint64_t unix_ns, std::chrono::seconds utc_offset);
/// Of this machine's clock.
std::chrono::seconds utc_offset_now();
/// As people count: node-9 before node-10.
std::vector<const proto::ClusterInfo::Node*> nodes_by_name(const proto::ClusterInfo& cluster);
/// "no direct way to node-2: messages pass through the coordinator's process, ..."
std::string apart_text(const proto::ClusterInfo::Node::Apart& x);
/// "01:04:00 device 0x4 of node-2 is lost: its process is gone"
std::string gone_text(const proto::ClusterInfo::Gone& x, std::chrono::seconds utc_offset);

/// For people: each node with its devices and what these do, each communicator, what is gone and why; several lines.
/// `utc_offset`: of the clock on the reader's wall.
std::string info_text(const proto::ClusterInfo& cluster, const std::string& coordinator,
                      std::chrono::seconds utc_offset);

/// What a node took with it.
struct node_loss {
  std::string text; ///< In one line: "devices 0x3 0x4 of communicator 1 (epoch 2 on 6 ranks)".
  std::vector<communicator_id> communicators;
};
/// None as long as the node, or one of its devices, is not known to be gone, or one of their communicators has not yet
/// changed its epoch or ended for it.
std::optional<node_loss> loss_of(const proto::ClusterInfo& cluster, const std::string& node);

/// One JSON object in one line: protobuf's own JSON with the field names of messages/*.proto. 64-bit numbers are
/// strings, as JSON numbers lose digits above 2^53.
std::string json_of(const google::protobuf::Message& x);

} // namespace ringmaster
