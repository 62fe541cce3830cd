#pragma once

#include "messages/cluster.pb.h"
#include "messages/ids.hpp"
#include "runtime/coordination/communicator_registry.hpp"
#include "runtime/coordination/device_registry.hpp"

#include <caf/error.hpp>

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ringmaster {

/// Nodes that are drained: no communicator gets their devices, their ranks leave their communicators, and then the node
/// is asked to exit. It changes the registry of devices, and sends nothing: after every event that may have freed or
/// brought devices, `next` says what to do for a node.
///
///   draining --none of its devices is in a communicator--> asked to exit --its process has exited--> answered
///     \_ the limit of the last request passes: no longer draining
class drain_desk {
public:
  using number = uint64_t; ///< Of a request that waits for an answer.

  struct step {
    /// Ask these communicators to release these devices, then call `answered`.
    std::map<communicator_id, std::vector<device_id>> ask;
    bool end_node = false;
  };

  drain_desk(device_registry& devices, const communicator_registry& communicators)
    : devices_(devices), communicators_(communicators) {}

  /// Precondition: the node is in the cluster.
  void begin(node_id node, number who);
  std::vector<node_id> nodes() const;
  step next(node_id node);
  /// The communicator has released these devices. After a problem it is asked again at the next event.
  void answered(node_id node, communicator_id communicator, const std::vector<device_id>& devices, epoch_number epoch,
                const caf::error& problem);

  struct ending {
    std::vector<number> to;
    std::vector<std::string> done; ///< A line for each communicator that goes on.
    bool asked_to_exit = false;    ///< It was asked to exit; else it was lost before that.
  };
  /// Whether it was asked to exit. Also true of a node that has exited: its devices' down messages may come later.
  bool is_given(node_id node) const;
  /// The node has exited. None: it was not being drained.
  std::optional<ending> gone(node_id node);
  /// The limit has passed. None: the request has been answered. Else what it waited for.
  std::optional<std::string> expired(number who);

private:
  struct drain {
    std::set<number> waiting;
    std::set<communicator_id> asked;
    std::map<communicator_id, caf::error> problems;
    std::vector<std::string> done;
    bool asked_to_exit = false;
  };

  std::map<communicator_id, std::vector<device_id>> communicators_of(node_id node) const;
  std::string waits_for(node_id node, const drain& x) const;
  bool replaces(communicator_id communicator) const;

  device_registry& devices_;
  const communicator_registry& communicators_;
  std::map<node_id, drain> drains_;
  std::set<node_id> drained_; ///< Exited when asked to. An id is never used twice.
};

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
