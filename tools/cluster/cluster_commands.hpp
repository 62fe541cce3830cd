#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

// The commands for the processes of a cluster.

/// `ringmaster coordinator`: listens, keeps the journal, hosts no device. Exits on SIGTERM or SIGINT.
tool_command coordinator_command();
/// `ringmaster node`: joins a coordinator with some devices, or waits for one that lists it in its configuration.
tool_command node_command();

// The commands for a running cluster.

/// `ringmaster status`: what a cluster is doing, and which ranks the others wait for.
tool_command status_command();
/// `ringmaster info`: the members of a cluster; optionally waits for nodes or devices.
tool_command info_command();
/// `ringmaster kill`, `hang` and `slow`: inject faults into devices.
tool_command kill_command();
tool_command hang_command();
tool_command slow_command();
/// `ringmaster drain NODE`: removes a node without losing work.
tool_command drain_command();
/// `ringmaster destroy N`: destroys communicators.
tool_command destroy_command();
/// `ringmaster absent RANK:CAUSE...`: reports ranks whose processes have exited, so that others do not wait for them.
tool_command absent_command();

} // namespace ringmaster
