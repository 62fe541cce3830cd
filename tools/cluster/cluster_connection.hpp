#pragma once

#include "actors/configuration/configuration.hpp"
#include "messages/interfaces.hpp"

#include <caf/actor_system.hpp>
#include <caf/expected.hpp>

#include <cstdio>

namespace ringmaster {

/// The coordinator that a command is to ask: --join's, or that of RINGMASTER_COORDINATOR. Errors: invalid_argument
/// where neither says which; those of `connect`.
caf::expected<coordinator_actor> coordinator_for(const char* command, caf::actor_system& system, const options& opts);

/// Prints the problem as the command's and ends the process with status 1: a connection attempt that the system still
/// waits for must not hold it.
[[noreturn]] void end_at_once(const char* command, const caf::error& problem, std::FILE* err);

} // namespace ringmaster
