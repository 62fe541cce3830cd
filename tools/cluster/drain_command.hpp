#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster drain NODE`: lets a node end without a loss.
tool_command drain_command();

} // namespace ringmaster
