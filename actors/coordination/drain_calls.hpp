#pragma once

#include "actors/calls/request_peer.hpp"
#include "messages/interfaces.hpp"
#include "runtime/coordination/drain_desk.hpp"

#include <caf/result.hpp>
#include <caf/timespan.hpp>
#include <caf/typed_response_promise.hpp>

#include <map>
#include <string>

namespace ringmaster {

class coordinator_state;

/// Requests to drain a node: its ranks leave their communicators, then the node is asked to exit (`drain_desk`).
class drain_calls {
public:
  explicit drain_calls(coordinator_state& coordinator);

  caf::result<proto::DrainResponse> drain(const proto::DrainRequest& x);
  /// Devices have left their communicators.
  void serve();
  /// A limit has passed. Returns whether it is that of a request here.
  bool expire(uint64_t number);
  /// Answers the requests for this node.
  void node_gone(node_id node, const std::string& place, const caf::error& reason);
  /// Why the node, or one of its devices, has ended, for people.
  std::string cause_of_end(node_id node, const caf::error& reason) const;
  size_t waiting_of(const request_peer& peer) const;

private:
  struct waiting_call {
    request_peer peer;
    node_id node;
    caf::timespan limit{0};
    caf::typed_response_promise<proto::DrainResponse> promise;
  };

  /// Errors: refused, for an unknown node and for one that cannot be drained.
  caf::expected<node_id> node_of(const std::string& name) const;
  void let_leave(node_id node, communicator_id communicator, const device_ids& members);
  /// Tells communicators to keep the node's devices that have not left yet.
  void cancel(node_id node);

  coordinator_state& coordinator_;
  drain_desk desk_;
  std::map<uint64_t, waiting_call> calls_;
};

} // namespace ringmaster
