#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ringmaster {

/// Bytes of the mark that editors of Windows put before UTF-8 (EF BB BF): 3, or 0 where there is none.
size_t byte_order_mark_bytes(std::string_view text);

/// The text after its byte order mark, if it has one.
inline std::string_view without_byte_order_mark(std::string_view text) {
  return text.substr(byte_order_mark_bytes(text));
}

/// For a text in UTF-16 or UTF-32, with a byte order mark or without: "it is in UTF-16, and must be in UTF-8: ...".
/// Empty: it is in neither.
std::string wide_encoding_problem(std::string_view text);

} // namespace ringmaster
