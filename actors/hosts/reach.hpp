#pragma once

#include "runtime/text/endpoint.hpp"

#include <caf/error.hpp>
#include <caf/timespan.hpp>

namespace ringmaster {

/// Whether somebody accepts connections there: connects, waits `limit` at most, and hangs up. CAF's own connecting has
/// no limit, and one that is under way holds up all others of the process: so nobody is connected to who was not
/// reached before. Blocks; for a thread of its own. Errors: invalid_argument, for a name that nobody knows;
/// unreachable, with both ends and what to look at.
caf::error reach(const endpoint& there, caf::timespan limit = std::chrono::seconds{3});

} // namespace ringmaster
