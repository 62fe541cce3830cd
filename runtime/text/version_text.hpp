#pragma once

#include <caf/error.hpp>

#include <cstdint>
#include <string>

namespace ringmaster {

/// The output of --version: the program's name and version, and the versions of CAF, protocol and journal format.
std::string version_text(const std::string& program);

/// An error (wrong_version, with both versions) unless `who` speaks our protocol. `theirs` is 0 up to protocol 4, which
/// did not send a number. `whose`: our name in the error.
caf::error check_protocol(const std::string& who, uint32_t theirs, const std::string& whose);

} // namespace ringmaster
