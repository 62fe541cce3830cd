#pragma once

#include <string>
#include <vector>

namespace ringmaster {

/// `ringmaster info`: who is in a cluster; waits for some nodes or devices if told to. `args` is what stands behind the
/// command's name. Returns the exit status: 0; 1 for an error, or where somebody is missing; 2 for wrong usage.
int info_command(const std::vector<std::string>& args);

} // namespace ringmaster
