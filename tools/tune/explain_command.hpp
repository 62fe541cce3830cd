#pragma once

#include <cstdio>
#include <span>
#include <string>

namespace ringmaster {

/// `ringmaster explain KIND [options]`: which algorithm would be picked, and why. `args` is what stands behind
/// "explain". Writes to `out`, and to `err` what went wrong. Returns the exit code: 0, 1 for an error, 2 for wrong usage.
int explain_command(std::span<const std::string> args, std::FILE* out = stdout, std::FILE* err = stderr);

} // namespace ringmaster
