#include "training/data/python_random.hpp"

#include "messages/errc.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <numeric>

using namespace ringmaster::training;

namespace {

std::vector<int> shuffled_ten(python_random random) {
  std::vector<int> result(10);
  std::iota(result.begin(), result.end(), 0);
  random.shuffle(std::span{result});
  return result;
}

} // namespace

// All figures are CPython's (3.11), printed by a script.

TEST_CASE("python random: shuffles as CPython does, whatever the seed's length") {
  CHECK(shuffled_ten(python_random{1234}) == std::vector{2, 8, 3, 5, 6, 4, 9, 0, 1, 7});
  CHECK(shuffled_ten(python_random{0}) == std::vector{7, 8, 1, 5, 3, 4, 2, 0, 9, 6});
  CHECK(shuffled_ten(python_random{123456789012345}) == std::vector{5, 9, 2, 7, 0, 8, 1, 6, 4, 3});
}

TEST_CASE("python random: the high half of a seed stands 64 bits above the low one") {
  CHECK(shuffled_ten(python_random{7, 3}) == std::vector{1, 0, 2, 9, 3, 8, 4, 7, 6, 5});
  CHECK(shuffled_ten(python_random{0, uint64_t{1} << 40}) == std::vector{4, 8, 9, 7, 0, 3, 6, 2, 1, 5});
  CHECK(shuffled_ten(python_random{1234, 0}) == shuffled_ten(python_random{1234}));
}

TEST_CASE("python random: a seed is a whole number of any size, whose sign does not count") {
  auto by = [](std::string_view text) {
    auto seed = python_seed::parse(text);
    REQUIRE(seed);
    return shuffled_ten(python_random{*seed});
  };
  CHECK(by("-1234") == std::vector{2, 8, 3, 5, 6, 4, 9, 0, 1, 7});
  CHECK(by("-1") == std::vector{6, 8, 9, 7, 5, 3, 0, 4, 1, 2});
  CHECK(by("-0") == shuffled_ten(python_random{0}));
  CHECK(by("+0x00000000000000004d2") == shuffled_ten(python_random{1234}));
  CHECK(by("18446744073709551616") == std::vector{3, 2, 9, 0, 6, 8, 4, 7, 1, 5}); // 2^64
  CHECK(by("-18446744073709551616") == by("18446744073709551616"));
  CHECK(by("0x30000000000000007") == shuffled_ten(python_random{7, 3}));
  CHECK(by("340282366920938463463374607431768211455") == std::vector{1, 4, 9, 2, 6, 5, 0, 8, 7, 3}); // 2^128 - 1
  CHECK(by("340282366920938463463374607431768211456") == std::vector{3, 6, 1, 8, 2, 0, 7, 4, 5, 9});
  CHECK(by("1" + std::string(40, '0')) == std::vector{9, 8, 4, 0, 6, 7, 1, 3, 2, 5});
  CHECK(by("1" + std::string(4299, '0')) == std::vector{2, 4, 7, 5, 3, 0, 1, 9, 8, 6});
  CHECK(by(std::string(4300, '7')) == std::vector{5, 6, 2, 8, 1, 9, 4, 0, 3, 7});
}

TEST_CASE("python random: a seed is shown in decimal, and what is no whole number is refused") {
  auto shown = [](std::string_view text) { return python_seed::parse(text)->text(); };
  CHECK(shown("-0") == "0");
  CHECK(shown("007") == "7");
  CHECK(shown("-0x10") == "-16");
  CHECK(shown("1000000000") == "1000000000");
  CHECK(shown("-340282366920938463463374607431768211456") == "-340282366920938463463374607431768211456");
  CHECK(python_seed{7, 3}.text() == "55340232221128654855");
  for (const std::string text : {"", "-", "+", "0x", "1.5", "abc", "1e3", "--1", " 1", "0xg"}) {
    CAPTURE(text);
    auto refused = python_seed::parse(text);
    REQUIRE(!refused);
    CHECK(ringmaster::test::contains(ringmaster::render(refused.error()), "is no whole number: "));
  }
  CHECK(!python_seed::parse(std::string(4301, '1')));
}

TEST_CASE("python random: bits are the top ones of each word, the low word first") {
  python_random random{5};
  std::vector<uint64_t> drawn;
  for (uint32_t count : {1, 31, 32, 33, 64, 40})
    drawn.push_back(random.bits(count));
  CHECK(drawn == std::vector<uint64_t>{1, 548563996, 3185950873, 5834865596, 17385139117288923102u, 815363081008});
}

TEST_CASE("python random: what is not below the limit is drawn again") {
  python_random random{99};
  std::vector<uint64_t> drawn;
  for (uint64_t limit : {uint64_t{1}, uint64_t{2}, uint64_t{1} << 32, uint64_t{10000000000000000000u}, uint64_t{3}})
    drawn.push_back(random.below(limit));
  CHECK(drawn == std::vector<uint64_t>{0, 1, 767950141, 2457925259611419118, 0});
}
