#pragma once

#include <caf/error.hpp>

#include <cstdint>
#include <string>

namespace ringmaster {

/// What --version prints: the program's name with our version, and below it those of what it talks and writes.
std::string version_text(const std::string& program);

/// Whether `who` speaks `whose` protocol, which is ours. `theirs`: 0 where it does not say, as up to protocol 4.
/// Errors: wrong_version, with both versions.
caf::error check_protocol(const std::string& who, uint32_t theirs, const std::string& whose);

} // namespace ringmaster
