#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster log DIR`: lists, filters and follows a journal, also of a running process, or exports it as a trace. In
/// color on a terminal unless NO_COLOR is set.
tool_command log_command();

} // namespace ringmaster
