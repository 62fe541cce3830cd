#pragma once

#include <caf/error.hpp>

#include <string>

namespace ringmaster {

/// Whether a node may join with its route. A forced route is the whole cluster's, and the coordinator's configuration
/// sets it. `who` ("node alpha") has no route of its own ("auto" or ""), or the same one. Errors: invalid_argument,
/// with both routes.
caf::error check_route(const std::string& who, const std::string& theirs, const std::string& clusters);

/// Whether a rank may join a coordinator. `theirs` is the job that `who` belongs to (launched_process::identity), empty
/// if the user named this coordinator for it; `ours` is the job that the coordinator serves, empty for none. Errors:
/// refused, with both jobs.
caf::error check_job(const std::string& who, const std::string& theirs, const std::string& ours);

constexpr size_t comm_name_bytes_max = 64;

/// Whether a communicator may have that name: one line, without control characters.
bool is_comm_name(const std::string& text);

/// What of a text can be one, for names that others have made: control characters are left out, and its end where it is
/// too long.
std::string as_comm_name(std::string text);

} // namespace ringmaster
