#pragma once

#include <cstdio>
#include <span>
#include <string>

namespace ringmaster {

/// `ringmaster puzzles`: judges the reader's programs in examples/puzzles/. `args` is what stands behind the command's
/// name. Returns the exit status: 0 whatever the verdict, for it is a lesson.
int puzzles_command(std::span<const std::string> args, std::FILE* out = stdout, std::FILE* err = stderr);

} // namespace ringmaster
