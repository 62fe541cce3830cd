#pragma once

#include <caf/error.hpp>

#include <string>

namespace ringmaster {

/// A route that is forced is forced for all of a cluster, and its coordinator's configuration says so. `who` ("node
/// alpha") may have none of its own, "auto" or "", or the same. Errors: invalid_argument, with both.
caf::error check_route(const std::string& who, const std::string& theirs, const std::string& clusters);

} // namespace ringmaster
