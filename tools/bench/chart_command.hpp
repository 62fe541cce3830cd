#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster chart`: draws what `ringmaster bench --json` has measured.
tool_command chart_command();

} // namespace ringmaster
