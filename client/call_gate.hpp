#pragma once

#include "messages/interfaces.hpp"

#include <caf/message_id.hpp>
#include <caf/scoped_actor.hpp>

namespace ringmaster {

/// Batches a client's calls to the coordinator for whose answers it does not wait. A single call is sent at once. Calls
/// made while one is unanswered are collected, and are sent as one message when all earlier calls have been answered.
/// So a program that calls ahead pays for one message for many calls, which between processes takes longer than a small
/// operation; no call is delayed, since the calls before it are not finished either. Each call is answered as if it had
/// been sent alone. A request that must not wait opens the gate. Used by the client's thread; answers arrive on any
/// thread.
class call_gate {
public:
  call_gate(caf::scoped_actor& client, const coordinator_actor& coordinator);
  call_gate(const call_gate&) = delete;
  call_gate& operator=(const call_gate&) = delete;
  /// Sends the collected calls; later answers are dropped.
  ~call_gate();

  /// The client receives the answer as the response of this id.
  void call(caf::message_id answer, proto::CollectiveRequest request);
  /// Sends the collected calls: the client is about to send a later request, or to wait for the answers.
  void open();

private:
  class doorkeeper;
  doorkeeper& keeper() const;

  caf::strong_actor_ptr keeper_;
};

} // namespace ringmaster
