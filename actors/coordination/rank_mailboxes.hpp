#pragma once

#include "messages/interfaces.hpp"
#include "runtime/coordination/shared_mailboxes.hpp"

namespace ringmaster {

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
