#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster partition`: which sample goes to which rank.
tool_command partition_command();

} // namespace ringmaster
