#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster absent RANK:CAUSE...`: says that the processes of these ranks have ended, so that nobody waits for them.
tool_command absent_command();

} // namespace ringmaster
