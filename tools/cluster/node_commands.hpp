#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

// The processes of a cluster.

/// `ringmaster coordinator`: listens, keeps the journal, hosts no device; ends with SIGTERM or SIGINT.
tool_command coordinator_command();

/// `ringmaster node`: joins a coordinator with some devices, or waits until one that has it in its configuration comes.
tool_command node_command();

} // namespace ringmaster
