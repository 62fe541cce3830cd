#include "runtime/text/nearest_word.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ringmaster {

namespace {

/// Levenshtein's distance, row by row: characters put in, left out or changed.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    auto diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      auto changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

/// One that goes on where the other ends: "--data" and "--data-ranks", "--micro" and "--micro-batch".
bool goes_on(std::string_view a, std::string_view b) {
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
    if (auto x = distance(word, candidate); x <= nearest && x < 3) {
      result = x == nearest ? "" : candidate;
      nearest = x;
    }
  if (nearest < 3)
    return result;
  const auto found = std::ranges::find_if(words, [&](auto& x) { return goes_on(word, x); });
  return found == words.end() || std::any_of(found + 1, words.end(), [&](auto& x) { return goes_on(word, x); })
           ? ""
           : *found;
}

} // namespace ringmaster
