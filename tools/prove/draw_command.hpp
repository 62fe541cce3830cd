#pragma once

#include <cstdio>
#include <span>
#include <string>

namespace ringmaster {

/// `ringmaster draw KIND [options]`: a schedule as text or as a picture. `args` is what stands behind "draw". Writes to
/// `out`, and to `err` what went wrong. Returns the exit code: 0, 1 for an error, 2 for wrong usage.
int draw_command(std::span<const std::string> args, std::FILE* out = stdout, std::FILE* err = stderr);

} // namespace ringmaster
