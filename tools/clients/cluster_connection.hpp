#pragma once

#include "actors/configuration/configuration.hpp"
#include "client/cluster.hpp"
#include "messages/interfaces.hpp"

#include <caf/actor_system.hpp>
#include <caf/expected.hpp>

#include <cstdio>
#include <memory>

namespace ringmaster {

/// Connects to the coordinator of --join or RINGMASTER_COORDINATOR. If it cannot be reached, the process exits
/// (`end_at_once`). Errors: invalid_argument if neither is given.
caf::expected<coordinator_actor> coordinator_for(const char* command, caf::actor_system& system, const options& opts,
                                                 std::FILE* err);

/// The cluster of --join or RINGMASTER_COORDINATOR, or else one in this process. If the former cannot be reached, the
/// process exits (`end_at_once`). Errors: as of `cluster::start`.
caf::expected<std::unique_ptr<cluster>> open_cluster(const char* command, caf::actor_system& system,
                                                     const options& opts, std::FILE* err);

/// For commands that call for all ranks: they must not be started once for each rank by a launcher. Errors:
/// invalid_argument with the launcher and the rank.
caf::error check_no_rank();

/// Prints the error and exits with status 1, without waiting for pending connection attempts.
[[noreturn]] void end_at_once(const char* command, const caf::error& problem, std::FILE* err);

} // namespace ringmaster
