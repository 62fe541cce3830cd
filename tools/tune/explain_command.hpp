#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster explain KIND`: which algorithm "auto" would pick, and why.
tool_command explain_command();

} // namespace ringmaster
