#pragma once

#include <cstdio>
#include <span>
#include <string>

namespace ringmaster {

/// `ringmaster log DIR [options]`: lists, filters and follows a journal, also that of a living process, or exports it
/// as a trace. `args` is what stands behind "log". Writes to `out`, in colour on a terminal unless NO_COLOR is set,
/// and to `err` what went wrong. Returns the exit code: 0, 1 for an error, 2 for wrong usage.
int log_command(std::span<const std::string> args, std::FILE* out = stdout, std::FILE* err = stderr);

} // namespace ringmaster
