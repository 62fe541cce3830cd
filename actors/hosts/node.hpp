#pragma once

#include "actors/devices/device.hpp"
#include "actors/hosts/relay.hpp"
#include "actors/hosts/supervisor.hpp"
#include "runtime/memory/mapped_memory.hpp"
#include "runtime/text/endpoint.hpp"

#include <caf/result.hpp>
#include <caf/typed_response_promise.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>

namespace ringmaster {

struct node_options {
  std::string name;     ///< This node's alone, or the coordinator refuses it.
  std::string hostname; ///< Of the machine.
  uint64_t pid = 0;
  uint64_t host_id = this_host(); ///< Processes with the same one have one clock.
  uint32_t devices = 0;
  bool plays_rank = false;   ///< It is a program that is a rank itself: it cannot be drained.
  std::string job;           ///< Of a rank: launched_process::identity.
  device_options device;     ///< For each of them.
  uint32_t restarts_max = 5; ///< Of its devices, within `period`.
  caf::timespan period = std::chrono::seconds{10};
  caf::timespan join_limit = std::chrono::seconds{5};
  std::shared_ptr<std::atomic<bool>> joined = std::make_shared<std::atomic<bool>>(false); ///< Set when it has.
  caf::timespan report_limit = std::chrono::milliseconds{100}; ///< For its devices to say how far they are.
  coordinator_actor coordinator; ///< If valid, it joins at once; else when JoinCluster comes.
  /// Looks for a peer and tells the node what has become of it: a NodeApart with the peer's name, and its handle or why
  /// there is none. Not set: over TCP, within `join_limit`.
  std::function<void(const node_actor& us, const proto::NodePeers::Peer& peer)> reach;
};

/// The state of a NODE: joins a coordinator, then starts a supervisor for its devices. A device that dies comes back as
/// a fresh one: a new id, empty memory, free for communicators to come. Where the coordinator is lost it ends with
/// `unreachable`.
///
///   idle --Adopt--> joining --answered--> hosting --coordinator down, supervisor down--> quits
class node_state {
public:
  static inline const char* name = "node";

  node_actor::pointer self = nullptr;
  node_options options;
  caf::actor devices; ///< Their supervisor.

  void join(const proto::Adopt& x);
  /// The coordinator is back after a restart: this node is, too, with its devices.
  void rejoin(const proto::ClusterIdentity& now);
  void host(node_id own, const std::vector<device_id>& wanted_ids);
  /// These are there: connects to those before us in the list, the others come to us.
  void meet(const proto::NodePeers& x);
  void connect(const proto::NodePeers::Peer& peer);
  /// The same, where it is time to; or the coordinator says that it is.
  void connect_again(const proto::NodePeers::Peer& peer);
  /// One of those behind us in the list has connected to us.
  void visited(const std::string& peer_name, const caf::strong_actor_ptr& peer);
  /// What has become of a try to connect.
  void met(const proto::NodeApart& x, const caf::strong_actor_ptr& peer);
  /// Whether this process runs, and that of the peer in the request, as far as it is reached directly.
  caf::result<proto::AliveResponse> alive(const proto::AliveRequest& x);
  void on_down(const caf::down_msg& x);
  /// Ends with the devices, in good order.
  void end(const caf::error& reason);

private:
  /// A node that we connect to, or that connects to us.
  struct known_peer {
    proto::NodePeers::Peer where;
    caf::actor_addr met; ///< Monitored; null: there is no connection.
    /// A connection that was lost is not made again before. The other end may not know that it is lost: then CAF would
    /// go on with the old one for its pending messages, and do not report when that ends.
    std::chrono::steady_clock::time_point not_before = {};
    /// The other end may believe that there is a connection, and does not watch it: a try of ours failed, or the
    /// connection was lost before our visit arrived. What it sends is lost until it knows better, which is at this
    /// time.
    std::optional<std::chrono::steady_clock::time_point> half_made_until = {};
    bool visit_noted = false; ///< The other end watches the connection, and reports if it is lost.
    bool trying = false;
    std::chrono::steady_clock::time_point again_at = {}; ///< When it is tried again.
    bool apart = false;                                  ///< As reported to the coordinator.
    bool warned = false;                                 ///< The log has been.
  };
  struct known_place {
    endpoint where;
    uint64_t link_process; ///< link_place::process; 0: it has no bulk connections.
  };

  uint64_t unix_ns() const { return options.device.streams_options.clock.unix_ns(self->clock().now()); }
  /// The coordinator's clock said so between that moment and now.
  void note_clock(uint64_t asked_ns, uint64_t theirs_ns);
  /// Forgets those that are no longer in a list.
  void forget_visitors(const proto::NodePeers& x);
  /// After so long both ends know that a connection is lost.
  caf::timespan loss_limit() const;
  /// Tells the coordinator that there is no direct way to a peer, or, where `why` is empty, that there is one again.
  void tell_apart(known_peer& peer, const caf::error& why);
  /// Once more, so that what runs is run again: some of it was lost on a connection that only the other end had.
  void tell_again(known_peer& peer, const caf::error& why);
  /// A try to connect came to nothing.
  void not_met(known_peer& peer, const caf::error& why, bool half_made);
  /// The connection with this node is gone: says so, and bulk connections do not wait until they notice, too.
  void lost_way(known_peer& peer, const caf::error& why);

  /// A node to which there is, or was, a connection.
  struct acquaintance {
    caf::actor_addr address; ///< Null: its node has ended, or the connection.
    bool lost_coordinator
      = false; ///< It has ended, because it had no connection to the coordinator: its process lives.
  };
  /// A node that was met is down, for this reason.
  void note_end(const caf::down_msg& x);
  void answer_probe(uint64_t number, bool lives);

  proto::NodeJoinRequest about() const;
  void joined(const proto::NodeJoinResponse& x, const caf::strong_actor_ptr& journal);

  node_id id_;
  proto::ClusterIdentity cluster_;
  endpoint address_; ///< Where others reach it; port 0: not at all.
  std::shared_ptr<relay_directory> living_ = std::make_shared<relay_directory>();
  bool same_clock_ = false;                    ///< As the coordinator.
  std::map<std::string, known_peer> peers_;    ///< Those that we connect to, by name.
  std::map<std::string, known_peer> visitors_; ///< Those that have connected to us.
  std::map<std::string, known_place> places_;  ///< Of all nodes, as the coordinator tells them.
  struct open_probe {
    caf::actor_addr peer;
    caf::typed_response_promise<proto::AliveResponse> promise;
  };
  /// By name, also of those that the coordinator has taken off its list: it asks about them.
  std::map<std::string, acquaintance> acquaintances_;
  std::map<uint64_t, open_probe> probes_; ///< Of peers, for the coordinator.
  uint64_t last_probe_ = 0;
};

node_actor::behavior_type node(node_actor::stateful_pointer<node_state> self, node_options options);

} // namespace ringmaster
