#pragma once

#include <string>
#include <vector>

namespace ringmaster {

/// `ringmaster destroy N...`: ends communicators, whoever made them; their devices are free. `args` is what stands behind
/// the command's name. Returns the exit status: 0; 1 where one of them could not be ended; 2 for wrong usage.
int destroy_command(const std::vector<std::string>& args);

} // namespace ringmaster
