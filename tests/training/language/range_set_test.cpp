#include <ringmaster/strategy/range_set.hpp>

#include <doctest/doctest.h>

#include <random>
#include <set>

using namespace ringmaster::training;

namespace {

std::set<uint64_t> numbers_of(range x) {
  std::set<uint64_t> result;
  for (auto i = x.begin; i < x.end; ++i)
    result.insert(i);
  return result;
}

/// As people write it, from the numbers themselves.
std::string text_of(const std::set<uint64_t>& numbers) {
  std::string result;
  for (auto i = numbers.begin(); i != numbers.end();) {
    auto first = *i, last = first;
    while (++i != numbers.end() && *i == last + 1)
      last = *i;
    result += (result.empty() ? "" : ", ") + std::to_string(first) + (last == first ? "" : "-" + std::to_string(last));
  }
  return result.empty() ? "none" : result;
}

} // namespace

TEST_CASE("range set: agrees with a set of numbers on random ranges, in any order") {
  std::mt19937 random{7};
  for (int trial = 0; trial < 300; ++trial) {
    range_set sum;
    std::set<uint64_t> expected;
    for (int i = 0; i < 12; ++i) {
      auto begin = random() % 40;
      range_set more{range{begin, begin + 1 + random() % 4}};
      auto added = numbers_of(more.first());
      if (random() % 3 == 0) { // in two pieces
        range behind{begin + 6, begin + 7 + random() % 3};
        REQUIRE(more.add(range_set{behind}));
        for (auto x : numbers_of(behind))
          added.insert(x);
      }
      bool apart = true;
      for (auto x : added)
        apart = apart && expected.count(x) == 0;
      CAPTURE(sum.text());
      CAPTURE(more.text());
      REQUIRE(sum.add(more) == apart);
      if (apart)
        expected.insert(added.begin(), added.end());
      REQUIRE(sum.text() == text_of(expected));
      REQUIRE(sum.count() == expected.size());
      REQUIRE(sum.empty() == expected.empty());
      auto from = random() % 40, to = from + 1 + random() % 5;
      bool holds = true;
      for (auto x : numbers_of({from, to}))
        holds = holds && expected.count(x) != 0;
      REQUIRE(sum.contains({from, to}) == holds);
    }
    auto copy = sum;
    REQUIRE(copy == sum);
    if (copy.add(range_set{range{50, 51}}))
      REQUIRE_FALSE(copy == sum);
    copy = range_set{range{1, 2}};
    REQUIRE(copy.text() == "1");
    REQUIRE(sum.text() == text_of(expected));
  }
}
