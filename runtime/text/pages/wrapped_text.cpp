#include "runtime/text/pages/wrapped_text.hpp"

#include <algorithm>

namespace ringmaster {

namespace {

/// Removes the next word from the text, with following words that start with "%"; empty at the end.
std::string take_word(std::string_view& text) {
  std::string result;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
    if (text.empty() || (!result.empty() && text.front() != '%'))
      return result;
    const auto word = text.substr(0, text.find_first_of(" \n"));
    result.append(result.empty() ? "" : " ").append(word);
    text.remove_prefix(word.size());
  }
}

} // namespace

size_t columns_of(std::string_view text) {
  constexpr unsigned char two_highest = 0xc0, continues = 0x80;
  return static_cast<size_t>(std::ranges::count_if(text, [](char x) { return (x & two_highest) != continues; }));
}

std::string wrapped_text(std::string_view text, size_t columns, size_t indent, size_t start) {
  std::string result;
  auto column = start;
  bool is_first = true; // of its line
  for (auto word = take_word(text); !word.empty(); word = take_word(text)) {
    const auto width = columns_of(word);
    if (!is_first && column + 1 + width > columns) {
      result.append("\n").append(indent, ' ');
      column = indent;
      is_first = true;
    }
    result.append(is_first ? "" : " ").append(word);
    column += width + (is_first ? 0 : 1);
    is_first = false;
  }
  return result;
}

} // namespace ringmaster
