#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

// The commands of a cluster in several processes.

/// `ringmaster coordinator`: listens, keeps the journal, hosts no device; ends with SIGTERM or SIGINT.
tool_command coordinator_command();

/// `ringmaster node`: joins a coordinator with some devices, or waits until one that has it in its configuration comes.
tool_command node_command();

/// `ringmaster info`: who is in a cluster; waits for some nodes or devices if told to.
tool_command info_command();

} // namespace ringmaster
