#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster::launch {

/// `caf-run`: starts a cluster, runs a program against it, and stops everything. A program that is one command.
tool_command launch_command();

} // namespace ringmaster::launch
