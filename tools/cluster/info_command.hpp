#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster info`: who is in a cluster, and what it is doing; waits for some nodes or devices if told to.
tool_command info_command();

} // namespace ringmaster
