#pragma once

#include <string>
#include <string_view>

namespace ringmaster::test {

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// How often it is there; what overlaps counts.
inline size_t occurrences(std::string_view text, std::string_view part) {
  size_t result = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++result;
  return result;
}

} // namespace ringmaster::test
