#pragma once

#include "messages/interfaces.hpp"
#include "runtime/coordination/device_registry.hpp"
#include "runtime/coordination/ownership.hpp"
#include "runtime/metadata/cluster_metadata.hpp"

#include <caf/error.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/result.hpp>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ringmaster {

class coordinator_state;

/// How a coordinator that was restarted finds its cluster again:
///
///   awaiting nodes --all are back, or `rejoin_limit` has passed--> recalling --all devices have said what they know-->
///   done
///
/// Nodes come back by themselves, with their devices. Those that do not count as lost. Each device says which
/// communicators it is in and what it knows of their operations, and each communicator is built again from that
/// (runtime/epochs/communicator_recovery.hpp). Until then every other request waits.
class cluster_recovery {
public:
  explicit cluster_recovery(coordinator_state& coordinator) : coordinator_(coordinator) {}

  /// `found`: what the store has of the cluster's former run.
  void start(cluster_metadata found);
  bool is_done() const { return state_ == phase::done; }
  /// Whether the cluster is found again by such requests: requests of the same process that wait must not delay them.
  static bool is_awaited(const caf::mailbox_element& x);
  /// Whether the message must wait until the cluster is found again, and it is certain that this coordinator leads.
  bool holds(const caf::mailbox_element& x) const;

  proto::GreetingResponse greet(const proto::GreetingRequest& x);
  caf::result<proto::NodeJoinResponse, caf::strong_actor_ptr> rejoin(
    const proto::NodeJoinRequest& x, const caf::strong_actor_ptr& node, const device_handles& devices);
  proto::ClientReturnResponse client_returned(const proto::ClientReturn& x);
  /// A node or device that has come back has ended.
  void lost(node_id id);
  void freed(owned_range what);
  /// Returns whether the number is of a limit here.
  bool expire(uint64_t number);

private:
  enum class phase { awaiting_nodes, recalling, done };

  caf::error check(const proto::NodeJoinRequest& x) const;
  /// This coordinator was replaced while it was paused: it ends, and serves nothing more.
  caf::error check_newest(const proto::ClusterIdentity& theirs) const;
  void register_node(const proto::NodeJoinRequest& x, const caf::strong_actor_ptr& node, const device_handles& devices);
  void advance();
  void recall();
  void recalled(device_id device);
  void declare_missing_lost();
  void build_communicators();
  void build(const proto::StoredCommunicator& stored);
  void end_unknown();
  void restore_allocations(device_id device, const proto::Recalled& said);
  /// It had ended on some of its devices: it ends on all.
  void end(communicator_id id, const std::vector<device_id>& devices);
  void give_up_owners();

  coordinator_state& coordinator_;
  phase state_ = phase::done;
  cluster_metadata found_;
  std::set<node_id> missing_;     ///< Nodes that have not come back.
  std::set<device_id> to_recall_; ///< Devices whose answer is due.
  std::map<device_id, proto::Recalled> known_;
  std::map<device_id, std::string> why_lost_;
  std::map<std::string, ownership::belongings> owners_; ///< What clients own that have not come back.
  uint64_t nodes_limit_ = 0, owners_limit_ = 0;         ///< Numbers of timers.
};

} // namespace ringmaster
