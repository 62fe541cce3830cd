#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster draw KIND`: a schedule as text or as a picture.
tool_command draw_command();

} // namespace ringmaster
