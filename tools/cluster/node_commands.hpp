#pragma once

#include <string>
#include <vector>

namespace ringmaster {

// The commands of a cluster in several processes. `args` is what stands behind the command's name. Return the exit
// status: 0, 1 for an error, 2 for wrong usage.

/// `ringmaster coordinator`: listens, keeps the journal, hosts no device; ends with SIGTERM or SIGINT.
int coordinator_command(const std::vector<std::string>& args);

/// `ringmaster node`: joins a coordinator with some devices, or waits until one that has it in its configuration comes.
int node_command(const std::vector<std::string>& args);

} // namespace ringmaster
