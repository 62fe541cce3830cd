#include "training/data/sample_partition.hpp"

#include "messages/errc.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace ringmaster;
using namespace ringmaster::training;
using ringmaster::test::contains;

namespace {

using samples = std::vector<uint32_t>;

samples list_of(std::span<const uint32_t> x) {
  return {x.begin(), x.end()};
}

std::vector<uint64_t> counts_of(std::string_view fractions, uint64_t count) {
  auto read = parse_fractions(fractions);
  REQUIRE(read);
  auto counts = counts_by(count, *read);
  REQUIRE(counts);
  return *counts;
}

void check_refused_fractions(std::string_view text, std::string_view sentence) {
  auto read = parse_fractions(text);
  REQUIRE(!read);
  CHECK(code_of(read.error()) == errc::invalid_argument);
  CHECK_MESSAGE(contains(render(read.error()), sentence), render(read.error()));
}

} // namespace

TEST_CASE("partition: the figures of CPython's shuffle, cut from the front") {
  const sample_partition eight{8, 1234, *equal_counts(8, 2)};
  CHECK(list_of(eight.of(0)) == samples{1, 3, 2, 4});
  CHECK(list_of(eight.of(1)) == samples{5, 6, 0, 7});
  CHECK(eight.left_over().empty());
  const sample_partition many{50000, 1234, *equal_counts(50000, 1)};
  CHECK(list_of(many.of(0).first(10)) == samples{4564, 15975, 32972, 20607, 32086, 26368, 5375, 37584, 23693, 8375});
}

TEST_CASE("partition: a long shuffle tells how far it is, and is the same") {
  constexpr uint32_t count = 3 << 20;
  std::vector<double> parts;
  const auto watched = shuffled_samples(count, 1, 0, [&](double part) { parts.push_back(part); });
  CHECK(parts == std::vector<double>{0, 1 - 2. / 3, 1 - 1. / 3});
  CHECK(watched == shuffled_samples(count, 1));
}

TEST_CASE("partition: what equal parts leave over is the end of the order") {
  const sample_partition ten{10, 1234, *equal_counts(10, 4)};
  CHECK(ten.ranks() == 4);
  CHECK(list_of(ten.of(3)) == samples{9, 0});
  CHECK(list_of(ten.left_over()) == samples{1, 7});
}

TEST_CASE("partition: every sample goes to one rank at most") {
  const sample_partition x{1003, 5, counts_of("0.5,0.25,0.2", 1003)};
  auto all = list_of(x.left_over());
  for (uint32_t rank = 0; rank < x.ranks(); ++rank)
    all.insert(all.end(), x.of(rank).begin(), x.of(rank).end());
  std::sort(all.begin(), all.end());
  CHECK(all.size() == 1003);
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
  CHECK(all.back() == 1002);
}

TEST_CASE("partition: fractions are taken as they are written, and rounded down") {
  CHECK(counts_of("0.29", 100) == std::vector<uint64_t>{29}); // 0.29 * 100 is below 29 in doubles
  CHECK(counts_of("0.7,0.2,0.1", 10) == std::vector<uint64_t>{7, 2, 1});
  CHECK(counts_of("0.7,0.2,0.1", 11) == std::vector<uint64_t>{7, 2, 1});
  CHECK(counts_of("1", partitioned_samples_max) == std::vector<uint64_t>{partitioned_samples_max});
  CHECK(counts_of(".333333333333333333", 3000) == std::vector<uint64_t>{999});
  CHECK(*equal_counts(3000, 3) == std::vector<uint64_t>{1000, 1000, 1000});
  CHECK(*equal_counts(49, 49) == std::vector<uint64_t>(49, 1)); // 1/49 * 49 is below 1 in doubles
}

TEST_CASE("partition: fractions that cannot be are refused with what is wrong") {
  check_refused_fractions("0.7,0.31", "0.7,0.31 are more than 1 together");
  check_refused_fractions("0.5,", "\"\" is no fraction: it is not a number");
  check_refused_fractions("", "it is not a number");
  check_refused_fractions(".", "it is not a number");
  check_refused_fractions("0.5,half", "\"half\" is no fraction: it is not a number");
  check_refused_fractions("-0.5", "it is not a number");
  check_refused_fractions("nan", "it is not a number");
  check_refused_fractions("0.5.1", "it is not a number");
  check_refused_fractions("0.0", "it is 0");
  check_refused_fractions("1.1", "it is more than 1");
  check_refused_fractions("99999999999999999999999", "it is more than 1");
  check_refused_fractions("0.1234567890123456789", "more than 18 digits");
}

TEST_CASE("partition: fewer samples than ranks leave ranks without any, as rounding down has it") {
  CHECK(*equal_counts(3, 4) == std::vector<uint64_t>(4, 0));
  CHECK(*equal_counts(0, 2) == std::vector<uint64_t>(2, 0));
  CHECK(counts_of("0.5,0.1", 9) == std::vector<uint64_t>{4, 0});
  CHECK(counts_of("0.5,0.5", 0) == std::vector<uint64_t>{0, 0});
  const sample_partition three{3, 5, *equal_counts(3, 4)};
  CHECK(three.ranks() == 4);
  CHECK(three.of(3).empty());
  CHECK(list_of(three.left_over()) == samples{0, 1, 2}); // random.Random(5) leaves three where they are
  const sample_partition five{5, 0, *equal_counts(5, 9)};
  CHECK(list_of(five.left_over()) == samples{2, 1, 0, 4, 3});
  const sample_partition none{0, 5, *equal_counts(0, 2)};
  CHECK(none.of(1).empty());
  CHECK(none.left_over().empty());
}

TEST_CASE("partition: no rank at all is refused, as are fractions above 1 together") {
  CHECK(contains(render(equal_counts(3, 0).error()), "0 ranks"));
  auto large = parse_fractions("0.6"), small = parse_fractions("0.5");
  const std::vector both{large->front(), small->front()};
  CHECK(contains(render(counts_by(9, both).error()), "more than 1 together, from that of rank 1 on"));
}

TEST_CASE("partition: any seed of CPython's") {
  auto order = [](uint32_t count, std::string_view seed) { return shuffled_samples(count, *python_seed::parse(seed)); };
  CHECK(order(10, "-1") == samples{6, 8, 9, 7, 5, 3, 0, 4, 1, 2});
  CHECK(order(10, "340282366920938463463374607431768211456") == samples{3, 6, 1, 8, 2, 0, 7, 4, 5, 9});
  CHECK(order(2, "-99") == samples{0, 1});
  CHECK(order(1, "-99") == samples{0});
  CHECK(order(0, "-99").empty());
}
