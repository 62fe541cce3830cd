#pragma once

#include "actors/configuration/configuration.hpp"
#include "client/cluster.hpp"
#include "messages/interfaces.hpp"

#include <caf/actor_system.hpp>
#include <caf/expected.hpp>

#include <cstdio>
#include <memory>

namespace ringmaster {

/// The coordinator that a command is to ask: --join's, or that of RINGMASTER_COORDINATOR. Where it cannot be reached
/// the process ends as of `end_at_once`. Errors: invalid_argument where neither says which.
caf::expected<coordinator_actor> coordinator_for(const char* command, caf::actor_system& system, const options& opts,
                                                 std::FILE* err);

/// What a command uses that can have a cluster of its own: the one of --join or RINGMASTER_COORDINATOR, or else one of
/// this process. Where the one elsewhere cannot be reached the process ends as of `end_at_once`. Errors: those of
/// `cluster::start`.
caf::expected<std::unique_ptr<cluster>> open_cluster(const char* command, caf::actor_system& system,
                                                     const options& opts, std::FILE* err);

/// Of a command that calls for all ranks by itself: a launcher that starts it once a rank would give each a cluster of
/// its own, or one without devices. Errors: invalid_argument, with the launcher and the rank.
caf::error check_no_rank();

/// Prints the problem as the command's and ends the process with status 1: a connection attempt that the system still
/// waits for must not hold it.
[[noreturn]] void end_at_once(const char* command, const caf::error& problem, std::FILE* err);

} // namespace ringmaster
