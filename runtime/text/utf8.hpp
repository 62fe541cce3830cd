#pragma once

#include <caf/error.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace ringmaster {

/// Whether the bytes are well-formed UTF-8 (RFC 3629: no surrogates, nothing overlong).
bool is_utf8(std::string_view text);

/// The text with each byte that does not belong to a well-formed character replaced by U+FFFD.
std::string as_utf8(std::string_view text);

/// Line feeds, escape and other control characters of one byte.
inline bool is_control(char x) {
  const auto code = static_cast<unsigned char>(x);
  return code < 0x20 || code == 0x7f;
}
inline bool has_control_characters(std::string_view text) {
  return std::ranges::any_of(text, is_control);
}

/// The text with its ASCII letters in lower case.
std::string lower_case(std::string text);

/// as_utf8 with each control character, including those of 8 bits, written as "\x1b". For names from other processes
/// that are printed on a terminal.
std::string printable(std::string_view text);

/// The length of a UTF-8 byte order mark (EF BB BF, written by editors on Windows): 3, or 0 if there is none.
size_t byte_order_mark_bytes(std::string_view text);

/// The text after its byte order mark, if it has one.
inline std::string_view without_byte_order_mark(std::string_view text) {
  return text.substr(byte_order_mark_bytes(text));
}

/// An error (corrupt) for a text in UTF-16 or UTF-32, with or without a byte order mark: "it is in UTF-16, and must be
/// in UTF-8: ...". None for any other text.
caf::error wide_encoding_problem(std::string_view text);

} // namespace ringmaster
