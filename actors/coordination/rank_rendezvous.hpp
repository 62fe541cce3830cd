#pragma once

#include "actors/calls/request_peer.hpp"
#include "messages/interfaces.hpp"
#include "runtime/coordination/rendezvous_desk.hpp"
#include "runtime/coordination/shared_mailboxes.hpp"

#include <caf/result.hpp>
#include <caf/timespan.hpp>
#include <caf/typed_response_promise.hpp>

#include <map>
#include <string>
#include <variant>
#include <vector>

namespace ringmaster {

class coordinator_state;

/// Processes that come together as the ranks of a communicator, and leave it together (`rendezvous_desk`).
class rank_rendezvous {
public:
  explicit rank_rendezvous(coordinator_state& coordinator) : coordinator_(coordinator) {}

  caf::result<proto::RendezvousResponse> rendezvous(const proto::RendezvousRequest& x);
  caf::result<proto::FinalizeResponse> finalize(const proto::FinalizeRequest& x);
  /// A rank will not come: the others stop waiting for it.
  proto::RankAbsentResponse rank_absent(const proto::RankAbsentRequest& x);
  /// A group whose communicator was built again: these of its devices have not come back.
  void restore(const proto::StoredCommunicator& stored, const std::vector<device_id>& lost);
  void device_lost(device_id device, const std::string& cause);
  /// A limit has passed. Returns whether it is that of a rank that waits.
  bool expire(uint64_t number);
  /// Logs which ranks have not come yet.
  void log_missing_ranks(uint64_t number) const;
  size_t waiting_of(const request_peer& peer) const;

private:
  /// A rank that waits for the others, to start or to finish.
  struct waiter {
    request_peer peer;
    caf::timespan limit;
    std::variant<caf::typed_response_promise<proto::RendezvousResponse>,
                 caf::typed_response_promise<proto::FinalizeResponse>>
      promise;
  };

  proto::RendezvousResponse response_of(const gpu_sim::CommInitResponse& made, const caf::error& problem) const;
  /// `made`: the communicator of ranks that have come.
  void answer(const std::vector<uint64_t>& waiters, const gpu_sim::CommInitResponse& made, const caf::error& problem);
  void form(const rendezvous_desk::complete_group& group);
  /// Destroys the communicator, then answers the ranks that wait for that.
  void end_group(const rendezvous_desk::left_group& x);
  void report_departures();

  coordinator_state& coordinator_;
  rendezvous_desk desk_;
  std::map<uint64_t, waiter> waiters_;
};

class coordinator_state;

/// The shared-memory mailboxes in which ranks run small collectives without a message (`shared_mailboxes`): gives them
/// out, and closes them before anything else happens on their devices.
class rank_mailboxes {
public:
  explicit rank_mailboxes(coordinator_state& coordinator) : coordinator_(coordinator) {}

  /// Before the first request.
  void start(uint64_t slot_bytes) { mailboxes_ = shared_mailboxes{slot_bytes}; }
  proto::MeetingResponse open(const proto::MeetingRequest& x);
  /// What ranks have done in their mailbox.
  void report(const proto::MetReport& x);
  /// Something other than the ranks' own calls is about to happen on the communicator's devices, or on this device: the
  /// ranks use messages from now on.
  void close(communicator_id id);
  void close(device_id id);
  void communicator_ended(communicator_id id) { mailboxes_.ended(id); }

private:
  coordinator_state& coordinator_;
  shared_mailboxes mailboxes_;
};

} // namespace ringmaster
