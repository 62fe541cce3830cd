#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster tune`: measures the constants for the choice of algorithms.
tool_command tune_command();
/// `ringmaster explain`: shows which algorithm is picked, and why.
tool_command explain_command();

} // namespace ringmaster
