#pragma once

#include <caf/error.hpp>

#include <string>

namespace ringmaster {

/// Whether a rank may join a coordinator. `theirs` is the job that `who` belongs to (launched_process::identity), empty
/// where a user has named this coordinator for it; `ours` is the job that the coordinator serves, empty for none.
/// Errors: refused, with both.
caf::error check_job(const std::string& who, const std::string& theirs, const std::string& ours);

} // namespace ringmaster
