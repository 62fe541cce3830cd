#include "training/data/sampler.hpp"

#include "messages/errc.hpp"
#include "tests/support/text_search.hpp"
#include "training/data/sample_partition.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace ringmaster;
using namespace ringmaster::training;
using ringmaster::test::contains;

namespace {

std::vector<uint32_t> taken_at(sampler& from, sampler::place where) {
  auto batch = from.batch(where);
  return {batch.begin(), batch.end()};
}

sampler sampler_of(const sampler_options& opts) {
  auto made = sampler::of(opts);
  REQUIRE(made);
  return *made;
}

void check_sampler_refused(const sampler_options& opts, std::string_view sentence) {
  auto made = sampler::of(opts);
  REQUIRE(!made);
  CHECK(code_of(made.error()) == errc::invalid_argument);
  CHECK_MESSAGE(contains(render(made.error()), sentence), render(made.error()));
}

} // namespace

TEST_CASE("sampler: epoch 0 is CPython's shuffle of the seed, later ones that of the seed and 2^64 times the epoch") {
  auto x = sampler_of({.samples = 10, .global_batch = 5});
  CHECK(taken_at(x, {0, 0}) == std::vector<uint32_t>{2, 8, 3, 5, 6});
  CHECK(taken_at(x, {0, 1}) == std::vector<uint32_t>{4, 9, 0, 1, 7});
  auto seven = sampler_of({.samples = 10, .global_batch = 10, .seed = 7});
  CHECK(taken_at(seven, {3, 0}) == std::vector<uint32_t>{1, 0, 2, 9, 3, 8, 4, 7, 6, 5});
}

TEST_CASE("sampler: the samples of a step do not depend on what was asked before") {
  auto forwards = sampler_of({.samples = 100, .global_batch = 7}), backwards = forwards;
  std::vector<std::vector<uint32_t>> one, other;
  for (uint64_t steps = 0; steps < 42; ++steps)
    one.push_back(taken_at(forwards, forwards.place_of(steps)));
  for (uint64_t steps = 42; steps-- > 0;)
    other.insert(other.begin(), taken_at(backwards, backwards.place_of(steps)));
  CHECK(one == other);
  CHECK(one[0] != one[14]); // the next epoch
}

TEST_CASE("sampler: an epoch has every sample once at most, a short batch is dropped or used") {
  for (auto last : {short_batch::dropped, short_batch::used}) {
    auto x = sampler_of({.samples = 23, .global_batch = 5, .last = last});
    CHECK(x.steps_an_epoch() == (last == short_batch::used ? 5 : 4));
    std::vector<uint32_t> all;
    for (uint64_t step = 0; step < x.steps_an_epoch(); ++step) {
      auto batch = taken_at(x, {9, step});
      CHECK(batch.size() == (step == 4 ? 3 : 5));
      all.insert(all.end(), batch.begin(), batch.end());
    }
    std::sort(all.begin(), all.end());
    CHECK(all.size() == (last == short_batch::used ? 23 : 20));
    CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
    CHECK(all.back() < 23);
  }
}

TEST_CASE("sampler: a short batch is named, and a whole one is not") {
  CHECK(sampler_of({.samples = 20, .global_batch = 5}).remark() == "");
  CHECK(sampler_of({.samples = 23, .global_batch = 5, .last = short_batch::used}).remark()
        == "the last batch of each epoch has 3 samples in place of 5");
  CHECK(sampler_of({.samples = 23, .global_batch = 5}).remark()
        == "3 samples of each epoch, others each time, are left out: they fill no batch of 5");
}

TEST_CASE("sampler: steps that are counted through lead to epoch and step") {
  auto x = sampler_of({.samples = 23, .global_batch = 5});
  CHECK(x.place_of(0) == sampler::place{0, 0});
  CHECK(x.place_of(3) == sampler::place{0, 3});
  CHECK(x.place_of(4) == sampler::place{1, 0});
  CHECK(x.place_of(11) == sampler::place{2, 3});
}

TEST_CASE("sampler: a batch is cut over any number of ranks exactly") {
  auto x = sampler_of({.samples = 128, .global_batch = 128});
  auto batch = taken_at(x, {0, 0});
  for (uint32_t ranks : {1, 3, 4, 127, 128, 130}) {
    std::vector<uint32_t> joined;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      auto part = part_of_batch(batch, ranks, rank);
      CHECK(part.size() >= 128 / ranks);
      CHECK(part.size() <= (128 + ranks - 1) / ranks);
      joined.insert(joined.end(), part.begin(), part.end());
    }
    CHECK(joined == batch);
  }
  CHECK(part_of_batch(batch, 130, 129).empty());
}

TEST_CASE("sampler: invalid requests are refused with a reason") {
  check_sampler_refused({.samples = 0, .global_batch = 1}, "a batch of 1 sample cannot be taken from 0 samples");
  check_sampler_refused({.samples = 5, .global_batch = 0}, "a batch of 0 samples cannot be taken from 5 samples");
  check_sampler_refused({.samples = 5, .global_batch = 6}, "5 samples never fill a batch of 6");
  CHECK(sampler_of({.samples = 5, .global_batch = 6, .last = short_batch::used}).steps_an_epoch() == 1);
}
