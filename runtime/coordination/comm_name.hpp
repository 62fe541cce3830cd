#pragma once

#include <string>

namespace ringmaster {

constexpr size_t comm_name_bytes_max = 64;

/// Whether a communicator may have that name: one line, without control characters.
bool is_comm_name(const std::string& text);

/// What of a text can be one, for names that others have made: control characters are left out, and its end where it is
/// too long.
std::string as_comm_name(std::string text);

} // namespace ringmaster
