#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster::launch {

/// caf-run as a command: starts a cluster, runs a program against it, and stops everything.
tool_command launch_command();

} // namespace ringmaster::launch
