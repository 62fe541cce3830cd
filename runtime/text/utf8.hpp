#pragma once

#include <caf/error.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace ringmaster {

/// Whether the bytes are well-formed UTF-8 (RFC 3629: no surrogates, nothing overlong).
bool is_utf8(std::string_view text);

/// The text with every byte that is no part of a well-formed character replaced by U+FFFD.
std::string as_utf8(std::string_view text);

/// Such as line ends and what terminals take for commands; nothing of a character of several bytes.
inline bool is_control(char x) {
  const auto code = static_cast<unsigned char>(x);
  return code < 0x20 || code == 0x7f;
}
inline bool has_control_characters(std::string_view text) {
  return std::ranges::any_of(text, is_control);
}

/// The same as as_utf8, with each control character as "\x1b", those of 8 bits too: what somebody else has named, for a
/// line of a terminal.
std::string printable(std::string_view text);

/// Bytes of the mark that editors of Windows put before UTF-8 (EF BB BF): 3, or 0 where there is none.
size_t byte_order_mark_bytes(std::string_view text);

/// The text after its byte order mark, if it has one.
inline std::string_view without_byte_order_mark(std::string_view text) {
  return text.substr(byte_order_mark_bytes(text));
}

/// Errors: corrupt, for a text in UTF-16 or UTF-32, with a byte order mark or without: "it is in UTF-16, and must be in
/// UTF-8: ...". Any other text passes.
caf::error wide_encoding_problem(std::string_view text);

} // namespace ringmaster
