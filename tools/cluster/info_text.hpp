#pragma once

#include "messages/cluster.pb.h"
#include "messages/ids.hpp"

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

/// The nodes of `wanted` that have not joined with all their devices.
std::set<std::string> missing_nodes(const proto::ClusterInfo& cluster, std::set<std::string> wanted);

/// All communicators, also those without devices.
std::set<communicator_id> communicators_of(const proto::ClusterInfo& cluster);

// Texts of several commands.

/// Of a cluster whose coordinator runs so.
inline constexpr std::string_view insecure_text
  = "no secret is required (trust.insecure): every process that can connect may use and stop this cluster";

/// "connections between processes are encrypted: TLS 1.3", where they are.
std::string encryption_text(const proto::ClusterInfo& cluster);

/// "communicator 2 (training by ddp)", or "communicator 2".
std::string named_communicator(uint64_t id, const std::string& name);
/// "shrink"
std::string policy_text(proto::FailurePolicy x);
/// "01:04:00"
std::string time_text(uint64_t unix_ns, std::chrono::seconds utc_offset);
/// Of this machine's time zone.
std::chrono::seconds utc_offset_now();
/// In natural order: node-9 before node-10.
std::vector<const proto::ClusterInfo::Node*> nodes_by_name(const proto::ClusterInfo& cluster);
/// "no direct way to node-2: messages pass through the coordinator's process, ..."
std::string apart_text(const proto::ClusterInfo::Node::Apart& x);
/// "01:04:00 device 0x4 of node-2 is lost: its process is gone"
std::string gone_text(const proto::ClusterInfo::Gone& x, std::chrono::seconds utc_offset);

/// A report in lines: each node with its devices, each communicator, and losses with their causes. `utc_offset`: of the
/// reader's time zone.
std::string info_text(const proto::ClusterInfo& cluster, const std::string& coordinator,
                      std::chrono::seconds utc_offset);

/// What was lost with a node.
struct node_loss {
  std::string text; ///< In one line: "devices 0x3 0x4 of communicator 1 (epoch 2 on 6 ranks)".
  std::vector<communicator_id> communicators;
};
/// None until the loss of the node and its devices is known and their communicators have changed the epoch or ended.
std::optional<node_loss> loss_of(const proto::ClusterInfo& cluster, const std::string& node);

/// A JSON object in a line: protobuf's JSON with the field names of messages/*.proto. 64-bit numbers are strings, since
/// JSON numbers lose digits above 2^53.
std::string json_of(const google::protobuf::Message& x);

} // namespace ringmaster
