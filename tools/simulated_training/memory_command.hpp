#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster simulate memory`: what training holds, by published formulas.
tool_command memory_command();

} // namespace ringmaster
