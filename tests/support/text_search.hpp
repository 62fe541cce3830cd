#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace ringmaster::test {

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// The text without line breaks: its words, one blank apart.
inline std::string in_one_line(std::string_view text) {
  std::string result;
  for (auto x : text)
    if (x != '\n' && x != ' ')
      result += x;
    else if (!result.empty() && result.back() != ' ')
      result += ' ';
  return result;
}

/// Columns of the longest line of an ASCII text.
inline size_t longest_line(std::string_view text) {
  size_t result = 0;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    result = std::max(result, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

/// How often it is there; what overlaps counts.
inline size_t occurrences(std::string_view text, std::string_view part) {
  size_t result = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++result;
  return result;
}

} // namespace ringmaster::test
