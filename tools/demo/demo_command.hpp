#pragma once

#include <string>
#include <vector>

namespace ringmaster {

/// `ringmaster demo`: the course's program on real data, then again with a device that dies, as a story on standard
/// output. `args` is what stands behind the command's name. Returns the exit status: 0 if every result was right.
int demo_command(const std::vector<std::string>& args);

} // namespace ringmaster
