#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster diagnose`: why a job hangs, from what it left.
tool_command diagnose_command();

} // namespace ringmaster
