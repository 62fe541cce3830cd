#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster layout`: which rank has which part of each layer and of the data.
tool_command layout_command();

} // namespace ringmaster
