#include "runtime/training/data/sample_partition.hpp"

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

TEST_CASE("partition: a rank without a sample is refused") {
  CHECK(contains(render(equal_counts(3, 4).error()), "3 samples cannot be parted among 4 ranks"));
  CHECK(contains(render(equal_counts(3, 0).error()), "0 ranks"));
  auto tenth = parse_fractions("0.5,0.1");
  REQUIRE(tenth);
  CHECK(contains(render(counts_by(9, *tenth).error()), "rank 1 would have no sample: its fraction 0.1 of 9 samples"));
}
