#pragma once

#include "actors/configuration/configuration.hpp"
#include "messages/interfaces.hpp"

#include <caf/actor_system.hpp>
#include <caf/expected.hpp>

namespace ringmaster {

/// The coordinator that a command is to ask: --join's, or that of RINGMASTER_COORDINATOR. Errors: invalid_argument where
/// neither says which; those of `connect`.
caf::expected<coordinator_actor> coordinator_for(const char* command, caf::actor_system& system, const options& opts);

} // namespace ringmaster
