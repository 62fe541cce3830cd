#pragma once

#include "messages/interfaces.hpp"

#include <caf/error.hpp>
#include <caf/message_id.hpp>
#include <caf/scoped_actor.hpp>

#include <memory>

namespace ringmaster {

/// Ends what a client waits for as soon as its coordinator is gone. CAF 0.17 answers a request to an actor of another
/// process that has died, or whose connection has broken, at the request's own limit only. One thread at a time; the
/// coordinator's end may come from any.
class coordinator_link {
public:
  coordinator_link(caf::scoped_actor& self, const coordinator_actor& coordinator);
  coordinator_link(const coordinator_link&) = delete;
  coordinator_link& operator=(const coordinator_link&) = delete;
  ~coordinator_link();

  /// From now on the answer of this id is waited for: it is the reason of the coordinator's end, if that comes first.
  void expect(caf::message_id answer);

private:
  struct shared_state;
  class end_notice;

  std::shared_ptr<shared_state> state_;
  caf::strong_actor_ptr coordinator_;
};

} // namespace ringmaster
