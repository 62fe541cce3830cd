#pragma once

#include "actors/calls/request_peer.hpp"
#include "messages/interfaces.hpp"
#include "runtime/coordination/access_rules.hpp"
#include "runtime/coordination/communicator_registry.hpp"

#include <caf/result.hpp>
#include <caf/typed_response_promise.hpp>

#include <map>
#include <memory>

namespace ringmaster {

class coordinator_state;

/// An answer that several actors contribute to: delivered when all have reported.
template <class Answer>
struct gathering {
  Answer answer;
  size_t waiting = 1; ///< Reports that are missing; 1 is the caller's own.
  caf::typed_response_promise<Answer> promise;

  void reported();
};

/// What the coordinator tells about the cluster: its nodes, devices and communicators (ClusterInfo), and what they are
/// doing right now (ClusterStatus).
class info_calls {
public:
  explicit info_calls(coordinator_state& coordinator) : coordinator_(coordinator) {}

  /// Answers when the cluster has the number of devices that is asked for.
  caf::result<proto::ClusterInfo> cluster_info(const proto::ClusterInfoRequest& x);
  /// As far as communicators and nodes answer within a moment.
  caf::result<proto::ClusterStatus> cluster_status();
  /// A device has joined.
  void serve();
  /// A limit has passed. Returns whether it is that of a request here.
  bool expire(uint64_t number);
  size_t waiting_of(const request_peer& peer) const;

private:
  struct waiter {
    request_peer peer;
    proto::ClusterInfoRequest request;
    calling_process caller;
    caf::typed_response_promise<proto::ClusterInfo> promise;
  };
  using status_gathering = std::shared_ptr<gathering<proto::ClusterStatus>>;

  proto::ClusterInfo info() const;
  /// At most that many free devices, and nothing else.
  proto::ClusterInfo free_info(uint32_t devices_max) const;
  /// A client sees no communicators of others.
  void deliver(const proto::ClusterInfoRequest& x, const calling_process& caller,
               caf::typed_response_promise<proto::ClusterInfo> promise);
  void add_communicator(communicator_id id, const known_communicator& known,
                        const std::shared_ptr<gathering<proto::ClusterInfo>>& all);
  void add_status(communicator_id id, const known_communicator& known, const status_gathering& all);

  coordinator_state& coordinator_;
  std::map<uint64_t, waiter> waiters_;
};

} // namespace ringmaster
