#pragma once

#include "messages/type_ids.hpp"

#include <caf/behavior.hpp>
#include <caf/skip.hpp>
#include <caf/timespan.hpp>

#include <optional>

namespace ringmaster {

/// What a stream has been told to do wrong. See FaultRequest.
struct fault_plan {
  std::optional<proto::FaultRequest> armed; ///< Waits for its step.
  caf::timespan delay{0};                   ///< Added to every step.
  bool hung = false;

  /// Whether the fault strikes when `steps` rounds are done.
  bool strikes(uint32_t steps) const { return armed && armed->step() == steps; }
};

/// Makes an actor deaf: what is sent to it stays in its mailbox unanswered. It can still be ended from outside.
template <class Self>
void hang(Self* self) {
  self->set_default_handler(caf::skip);
  self->do_become(caf::behavior{[](atom::flush) {}}, true);
}

} // namespace ringmaster
