#pragma once

#include "messages/type_ids.hpp"

#include <caf/behavior.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/send.hpp>
#include <caf/skip.hpp>
#include <caf/timespan.hpp>

#include <optional>

namespace ringmaster {

/// What a stream has been told to do wrong. See FaultRequest.
struct fault_plan {
  std::optional<proto::FaultRequest> armed; ///< Waits for its round.
  caf::timespan delay{0};                   ///< Added to every round.

  /// Whether the fault strikes when so many rounds are done.
  bool strikes(uint32_t rounds) const { return armed && armed->step() == rounds; }
};

/// Makes an actor deaf: what is sent to it stays in its mailbox unanswered. It can still be ended from outside. After
/// `how_long` (0: never) `go_on` is called, and then it handles all that has come in its order.
template <class Self, class Function>
void hang(Self* self, caf::timespan how_long, Function go_on) {
  self->set_default_handler(caf::skip);
  if (how_long.count() == 0)
    return self->do_become(caf::behavior{[](atom::flush) {}}, true);
  auto awake = [self, go_on](atom::flush) {
    self->set_default_handler(caf::print_and_drop);
    self->unbecome();
    go_on();
  };
  self->do_become(caf::behavior{awake}, false);
  auto untyped = caf::actor_cast<caf::actor>(caf::strong_actor_ptr{self->ctrl()}); // no interface has the message
  caf::delayed_anon_send(untyped, how_long, atom::flush_v);
}

} // namespace ringmaster
