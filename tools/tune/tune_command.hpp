#pragma once

#include <string>
#include <vector>

namespace ringmaster {

/// `ringmaster tune ...`: measures what operations take here, and writes it into a configuration. Returns the exit status.
int tune_command(const std::vector<std::string>& args);

} // namespace ringmaster
