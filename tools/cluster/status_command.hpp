#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster status`: what a cluster is doing now, and whom it waits for.
tool_command status_command();

} // namespace ringmaster
