#pragma once

#include <caf/actor_addr.hpp>
#include <caf/expected.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/system_messages.hpp>

#include <functional>

namespace ringmaster {

// What the coordinator's process and that of a node have in common.

/// The signal to stop that this process has received, which is logged; 0: none.
int signal_to_stop();

/// Runs until a signal arrives, and returns it. Errors: `vital` has exited, or an error of `now_and_then`, which is
/// called regularly.
caf::expected<int> run_until_ended(caf::scoped_actor& self, const caf::actor_addr& vital,
                                   const std::function<caf::error()>& now_and_then,
                                   const std::function<void(const caf::down_msg&)>& other_down);

} // namespace ringmaster
