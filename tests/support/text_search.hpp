#pragma once

#include <string>
#include <string_view>

namespace ringmaster::test {

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

} // namespace ringmaster::test
