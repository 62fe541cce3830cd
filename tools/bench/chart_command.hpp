#pragma once

#include <cstdio>
#include <span>
#include <string>

namespace ringmaster {

/// `ringmaster chart`: draws what `ringmaster bench --json` has measured. `args` is what stands behind the command's
/// name. Returns the exit status.
int chart_command(std::span<const std::string> args, std::FILE* out = stdout, std::FILE* err = stderr);

} // namespace ringmaster
