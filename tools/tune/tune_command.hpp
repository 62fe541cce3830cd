#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster tune`: measures what operations take here, and fits the constants of section [costs] to it.
tool_command tune_command();

} // namespace ringmaster
