#include "runtime/text/comma_list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

namespace ringmaster {

std::vector<std::string_view> comma_list(std::string_view text) {
  std::vector<std::string_view> result;
  for (auto comma = text.find(','); comma != text.npos; comma = text.find(',')) {
    result.push_back(text.substr(0, comma));
    text.remove_prefix(comma + 1);
  }
  result.push_back(text);
  return result;
}

std::string choice_text(const std::vector<std::string>& words) {
  std::string result;
  for (auto& word : words)
    result += (result.empty() ? "" : &word == &words.back() ? " or " : ", ") + word;
  return result;
}

std::string shortened_list(const std::vector<std::string>& words, size_t shown) {
  const auto first = std::span{words}.first(std::min(words.size(), shown));
  const auto text = fmt::format("{}", fmt::join(first, ", "));
  return first.size() == words.size() ? text : fmt::format("{}, ... and {} more", text, words.size() - first.size());
}

} // namespace ringmaster
