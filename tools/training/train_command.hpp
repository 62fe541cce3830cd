#pragma once

#include <cstdio>
#include <span>
#include <string>

namespace ringmaster {

/// `ringmaster simulate train`: a training step by a strategy, in virtual time, under a cost model. `args` is what stands
/// behind "train". Returns the exit status.
int train_command(std::span<const std::string> args, std::FILE* out = stdout, std::FILE* err = stderr);

} // namespace ringmaster
