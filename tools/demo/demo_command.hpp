#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster demo`: the course's program on real data, then again with a device that dies, as a story.
tool_command demo_command();

} // namespace ringmaster
