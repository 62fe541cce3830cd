#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster prove`: walks schedules on symbols. Its status is 1 where a proof does not hold.
tool_command prove_command();

} // namespace ringmaster
