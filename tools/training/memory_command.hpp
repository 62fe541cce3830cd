#pragma once

#include <cstdio>
#include <span>
#include <string>

namespace ringmaster {

/// `ringmaster simulate memory`: what a GPU holds, by the published formulas.
int memory_command(std::span<const std::string> args, std::FILE* out, std::FILE* err);

} // namespace ringmaster
