#pragma once

#include <cstdio>
#include <span>
#include <string>

namespace ringmaster {

/// `ringmaster simulate KIND [options]`: a collective in virtual time. `args` is what stands behind "simulate".
/// Writes to `out`, and to `err` what went wrong. Returns the exit code: 0, 1 for an error and for a collective that cannot end,
/// 2 for wrong usage.
int simulate_command(std::span<const std::string> args, std::FILE* out = stdout, std::FILE* err = stderr);

} // namespace ringmaster
