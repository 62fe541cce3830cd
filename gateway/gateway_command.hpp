#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster::gateway {

/// `ringmaster-gateway`: serves the course protocol over gRPC, and HTTP, until SIGTERM or SIGINT.
tool_command gateway_command();

} // namespace ringmaster::gateway
