#include "runtime/training/data/python_random.hpp"

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
