#pragma once

#include <cstdio>
#include <span>
#include <string>

namespace ringmaster {

/// `ringmaster simulate validate`: measured and published iteration times against the transformer model's estimates.
int validate_command(std::span<const std::string> args, std::FILE* out, std::FILE* err);

} // namespace ringmaster
