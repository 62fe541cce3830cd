#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster plan compare`.
tool_command plan_compare_command();

} // namespace ringmaster
