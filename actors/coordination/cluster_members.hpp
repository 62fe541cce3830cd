#pragma once

#include "messages/ids.hpp"
#include "messages/interfaces.hpp"
#include "runtime/coordination/drain_desk.hpp"

#include <caf/error.hpp>
#include <caf/result.hpp>
#include <caf/system_messages.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace ringmaster {

class coordinator_state;
struct known_device;

namespace proto {
class StoredDevice;
class StoredNode;
} // namespace proto

/// How a device went.
struct device_end {
  std::string cause;
  std::string noticed_by; ///< Empty: it has left in good order.
  uint64_t noticed_ns = 0;
  std::optional<proto::Suspicion> suspicion = {}; ///< If that is how it was noticed.
  bool lives = false;                             ///< Its process cannot be reached, but others reach it.
};

/// How nodes and devices join the cluster, and how they leave it. They are in the coordinator's `devices`.
class cluster_members {
public:
  explicit cluster_members(coordinator_state& coordinator) : coordinator_(coordinator) {}

  /// Answers the node before the others hear of it.
  caf::result<proto::NodeJoinResponse, caf::strong_actor_ptr> let_in(const proto::NodeJoinRequest& x,
                                                                     const caf::strong_actor_ptr& node);
  /// A node has lost its direct connection to another one, or has made one again.
  void nodes_disconnected(const proto::NodeApart& x);

  /// The id of a device that is about to join.
  proto::DeviceJoinResponse new_device(const proto::DeviceJoinRequest& x);
  void device_ready(const proto::DeviceReady& x, const device_handle& handle);

  /// A device is lost, or suspected to be.
  void member_lost(const proto::MemberLost& x);
  /// Whether other nodes reach the process of a device that does not answer its communicator.
  caf::result<proto::ProbeResponse> probe(const proto::ProbeRequest& x);
  /// Ends a device that may still be running, and counts it as lost.
  void fence(device_id id, const device_end& how);
  /// An actor has ended. Returns whether it was a device or a node.
  bool ended(const caf::down_msg& x);

  /// The answer to a node that has joined, or has come back.
  proto::NodeJoinResponse welcome(const proto::NodeJoinRequest& x, node_id id) const;

  // -- after the coordinator was restarted --

  /// One that the store knows has not come back.
  void note_missing(node_id id, const proto::StoredNode& node);
  void note_missing(device_id id, const proto::StoredDevice& device);
  void store_device(const gpu_sim::DeviceMetadata& metadata, node_id node);
  /// Tells every node where the others are.
  void introduce_nodes();

  void note_departure(proto::ClusterInfo::Gone x);
  const recent_departures& departures() const { return departures_; }

private:
  proto::NodeJoinResponse node_joined(const proto::NodeJoinRequest& x, const caf::strong_actor_ptr& node);
  caf::error check(const proto::NodeJoinRequest& x, const caf::strong_actor_ptr& node) const;
  /// A process has one node. If it joins again, its former node and that node's devices have ended, though the
  /// connection that would show it may be open for some time.
  void end_former(const proto::NodeJoinRequest& x);
  /// Calls `then` when both have answered, within 100 ms: news from the others that one of two nodes has ended may come
  /// before its end does.
  void when_both_have_answered(node_id one, const std::string& other, std::function<void()> then);
  /// To the communicators with devices on both nodes.
  void tell_way_lost(const proto::NodeApart& x);
  void node_gone(node_id id, const caf::error& reason, bool left);
  void device_gone(device_id id, const device_end& how);
  void record_end(device_id id, const known_device& device, const device_end& how);
  /// Of a node that is in the cluster, or was until lately.
  std::string name_of(node_id id) const;

  coordinator_state& coordinator_;
  recent_departures departures_;
};

class coordinator_state;

/// Nodes that do not answer: how long each has been silent. A node's process may be stopped or busy, or the connection
/// may be down; none of these ends the node.
class node_silences {
public:
  explicit node_silences(coordinator_state& coordinator) : coordinator_(coordinator) {}

  /// Asks a node for a sign of life. `then` gets the length of its silence within a moment: 0 if it answers or has
  /// exited.
  void find(node_id id, const std::function<void(uint64_t silent_ns)>& then);
  /// Adds to an error with a node, within a moment, how long the node has been silent, if it is.
  void explain(node_id id, const caf::error& problem, const std::function<void(const caf::error&)>& then);
  /// The node counts as silent from `since_ns` (wall clock) on, until it answers.
  void note(node_id id, uint64_t since_ns);
  void node_gone(node_id id) { since_.erase(id); }

private:
  coordinator_state& coordinator_;
  std::map<node_id, uint64_t> since_; ///< Nodes that owe an answer, and since when: wall clock.
};

} // namespace ringmaster
