#pragma once

#include <caf/expected.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

/// A value of a JSON document that knows where it stands there, which is what errors have to say. Small on purpose: it
/// is for files that people write.
struct json_value {
  enum class type : uint8_t { null, boolean, number, text, list, object };

  /// A name in an object.
  struct key {
    std::string name;
    size_t offset = 0;
  };

  type what = type::null;
  bool flag = false;                 ///< boolean
  double number = 0;                 ///< number
  std::string text{};                ///< text
  std::vector<json_value> entries{}; ///< list, object
  std::vector<key> keys{};           ///< object: of each of the entries
  size_t offset = 0;                 ///< Of its first byte in the document.
  size_t end = 0;                    ///< Behind its last byte.
};

/// Reads a document: JSON as RFC 8259 has it, behind a byte order mark or not, and nothing else. Errors:
/// invalid_argument, with line, column and what must stand there; also for a name that is twice in an object, and for
/// more than 64 levels.
caf::expected<json_value> parse_json(std::string_view document);

/// The text as JSON has it, in quotation marks; what is no UTF-8 is replaced, as as_utf8 does.
std::string json_text(std::string_view text);

/// "line 3, column 14": both from 1, the column in characters.
std::string line_and_column(std::string_view document, size_t offset);

} // namespace ringmaster
