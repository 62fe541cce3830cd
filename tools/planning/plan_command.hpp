#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster plan`: the fastest ways to train. Its status is 1 where there is none.
tool_command plan_command();

} // namespace ringmaster
