#pragma once

#include <cstdio>
#include <span>
#include <string>

namespace ringmaster {

/// `ringmaster plan`: the fastest ways to train a model on so many ranks.
int plan_command(std::span<const std::string> args, std::FILE* out = stdout, std::FILE* err = stderr);

} // namespace ringmaster
