#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster bench`: measures collectives.
tool_command bench_command();
/// `ringmaster chart`: draws what bench has measured.
tool_command chart_command();

} // namespace ringmaster
