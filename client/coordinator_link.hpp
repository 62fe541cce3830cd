#pragma once

#include "messages/interfaces.hpp"

#include <caf/actor.hpp>
#include <caf/behavior.hpp>
#include <caf/error.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/message_id.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/timespan.hpp>

#include <memory>

namespace ringmaster {

/// Fails the request that a client waits for as soon as its coordinator has ended, and at its limit. CAF 0.17 answers a
/// request to an actor of another process that has died, or whose connection has broken, only at the limit of the
/// request. A blocking actor also receives the expiry of each limit as a message, long after the answer, and keeps it:
/// after a minute of many calls searching the mailbox took longer than the call. One thread at a time; the end of the
/// coordinator may be reported on any thread.
class coordinator_link {
public:
  coordinator_link(caf::scoped_actor& self, const coordinator_actor& coordinator);
  coordinator_link(const coordinator_link&) = delete;
  coordinator_link& operator=(const coordinator_link&) = delete;
  ~coordinator_link();

  /// Waits for the answer of this id, to a request without a limit of its own. The answer becomes the reason of the
  /// coordinator's end, or sec::request_timeout after `limit`, if that comes first.
  void expect(caf::message_id answer, caf::timespan limit);
  /// The answer has arrived.
  void answered();

private:
  struct shared_state;
  class end_notice;

  static caf::behavior watch_limits(caf::event_based_actor* self, std::shared_ptr<shared_state> state);

  std::shared_ptr<shared_state> state_;
  caf::strong_actor_ptr coordinator_;
  caf::actor watch_; ///< Checks the limit: one delayed message for many requests.
};

} // namespace ringmaster
