#pragma once

#include <string>
#include <vector>

namespace ringmaster {

/// `ringmaster bench`: measures collectives on devices of this process and prints nccl-tests' columns. `args` is what stands
/// behind the command's name. Returns the exit status: 0 if every result was right.
int bench_command(const std::vector<std::string>& args);

} // namespace ringmaster
