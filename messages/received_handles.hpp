#pragma once

#include "messages/transfer.hpp"

#include <caf/actor_system.hpp>

namespace ringmaster {

// Handles of actors that came in a message from another process. CAF loads null in place of the handle of an actor of
// this process that died while the message was on its way, and in place of one elsewhere when there is no connection to
// its process. A receiver of such a message takes its handles by `received`: then `device` and `stream` are
// actors, alive or dead, and a member that was lost on the way is treated as any other that dies. A `relay` may still
// be null.

device_handle received(caf::actor_system& system, const device_handle& handle);
/// The same handles where none is null, without a copy.
operation_orders received(caf::actor_system& system, const operation_orders& orders);
membership received(caf::actor_system& system, const membership& members);

/// Whether `received` put the handle in place of null. One of an actor that died after its arrival is not.
bool is_lost(const caf::strong_actor_ptr& handle);

} // namespace ringmaster
