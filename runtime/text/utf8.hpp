#pragma once

#include <string>
#include <string_view>

namespace ringmaster {

/// Whether the bytes are well-formed UTF-8 (RFC 3629: no surrogates, nothing overlong).
bool is_utf8(std::string_view text);

/// The text with every byte that is no part of a well-formed character replaced by U+FFFD.
std::string as_utf8(std::string_view text);

} // namespace ringmaster
