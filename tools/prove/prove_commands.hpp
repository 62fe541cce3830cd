#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster prove`: proves collective algorithms, or the schedules of a file.
tool_command prove_command();
/// `ringmaster draw`: shows the steps of a schedule, as text or as a picture.
tool_command draw_command();

} // namespace ringmaster
