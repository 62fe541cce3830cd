#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster kill`, `hang` and `slow`: make devices of a running cluster misbehave, to see what happens then.
tool_command kill_command();
tool_command hang_command();
tool_command slow_command();

} // namespace ringmaster
