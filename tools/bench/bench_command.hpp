#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster bench`: measures collectives on simulated devices in this process, or on those of a cluster.
tool_command bench_command();

} // namespace ringmaster
