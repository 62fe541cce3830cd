#include "runtime/text/comma_list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
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

namespace {

/// The Damerau-Levenshtein distance (Damerau 1964), row by row: characters inserted, removed, changed or swapped with
/// their neighbour.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> rows(a.size() + 1, std::vector<size_t>(b.size() + 1));
  std::iota(rows[0].begin(), rows[0].end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    rows[i][0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const auto changed = rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      rows[i][j] = std::min({changed, rows[i][j - 1] + 1, rows[i - 1][j] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows.back().back();
}

/// Whether one continues the other: "--data" and "--data-ranks", "--micro" and "--micro-batch".
bool continues(std::string_view a, std::string_view b) {
  constexpr size_t least = 3;
  const auto& shorter = a.size() < b.size() ? a : b;
  const auto& longer = a.size() < b.size() ? b : a;
  return shorter.find_first_not_of('-') + least <= shorter.size() && longer.starts_with(shorter)
         && longer.substr(shorter.size()).starts_with('-');
}

} // namespace

std::string nearest_word(std::string_view word, const std::vector<std::string>& words) {
  auto nearest = size_t{3};
  std::string result;
  for (const auto& candidate : words)
    if (auto x = distance(word, candidate); // fewer than half of a short word's letters may differ
        x <= nearest && x < 3 && 2 * x < std::max(word.size(), candidate.size())) {
      result = x == nearest ? "" : candidate;
      nearest = x;
    }
  if (nearest < 3)
    return result;
  const auto found = std::ranges::find_if(words, [&](auto& x) { return continues(word, x); });
  return found == words.end() || std::any_of(found + 1, words.end(), [&](auto& x) { return continues(word, x); })
           ? ""
           : *found;
}

} // namespace ringmaster
