#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster simulate validate`: the transformer cost model against measured steps.
tool_command validate_command();

} // namespace ringmaster
