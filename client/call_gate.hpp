#pragma once

#include "messages/interfaces.hpp"

#include <caf/message_id.hpp>
#include <caf/scoped_actor.hpp>

namespace ringmaster {

/// The way to the coordinator for a client's calls that nobody waits for. A lone one goes at once. What is called while
/// one has not been answered gathers, and goes as one message when all have been; so the calls of a program that runs
/// ahead cost a message for many of them, which between processes takes longer than a small operation, and nobody's
/// takes longer for it: those before are not done either. Each is answered as if the client had asked for it alone.
/// What must not wait opens the gate. Of the client's thread; answers come on any.
class call_gate {
public:
  call_gate(caf::scoped_actor& client, const coordinator_actor& coordinator);
  call_gate(const call_gate&) = delete;
  call_gate& operator=(const call_gate&) = delete;
  /// What has gathered goes; answers that come later are dropped.
  ~call_gate();

  /// The answer comes to the client as the response of this id.
  void call(caf::message_id answer, proto::CollectiveRequest request);
  /// Has what has gathered go: what the client sends now must come behind it, or it waits for the answers.
  void open();

private:
  class doorkeeper;
  doorkeeper& keeper() const;

  caf::strong_actor_ptr keeper_;
};

} // namespace ringmaster
