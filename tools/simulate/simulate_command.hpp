#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster simulate KIND`: a collective in virtual time; and below it train, memory and validate. Its status is 1
/// also for a collective that cannot end.
tool_command simulate_command();

} // namespace ringmaster
