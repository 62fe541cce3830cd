#include "runtime/algorithms/registry.hpp"

#include "messages/errc.hpp"
#include "tests/support/schedule_interpreter.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

std::vector<std::string_view> all_reduce_names() {
  std::vector<std::string_view> names;
  for (const auto& algorithm : algorithms())
    if (algorithm.kind == proto::ALL_REDUCE)
      names.push_back(algorithm.name);
  return names;
}

std::vector<schedule> plan_all(std::string_view name, uint32_t world_size, uint64_t count) {
  std::vector<schedule> ranks;
  for (uint32_t rank = 0; rank < world_size; ++rank) {
    auto planned = plan(proto::ALL_REDUCE, name, {.world_size = world_size, .rank = rank, .count = count});
    REQUIRE(planned);
    ranks.push_back(std::move(*planned));
  }
  return ranks;
}

proof prove_all_reduce(const std::vector<schedule>& ranks, uint64_t count, uint64_t seed) {
  return prove(proto::ALL_REDUCE, {.world_size = static_cast<uint32_t>(ranks.size()), .count = count}, ranks, seed);
}

std::set<uint64_t> all_reduce_counts(uint64_t world_size) {
  return {0, 1, 2, world_size - 1, world_size, world_size + 1, 1000, 1001};
}

/// Blocks that have elements.
uint64_t blocks_of(uint64_t count, uint32_t world_size) {
  return std::min<uint64_t>(count, world_size);
}

uint64_t block_size(uint64_t count, uint32_t world_size, uint32_t index) {
  return block_of(buffer::input, count, world_size, index % world_size).count;
}

} // namespace

TEST_CASE("schedule: blocks follow each other and cover every element") {
  for (uint32_t blocks = 1; blocks <= 20; ++blocks)
    for (uint64_t count : {0, 1, 7, 19, 20, 21, 1000}) {
      uint64_t next = 0;
      for (uint32_t index = 0; index < blocks; ++index) {
        auto block = block_of(buffer::output, count, blocks, index);
        CHECK(block.where == buffer::output);
        CHECK(block.offset == next);
        CHECK(block.count == count / blocks + (index < count % blocks ? 1 : 0));
        next += block.count;
      }
      CHECK(next == count);
    }
}

TEST_CASE("schedule: every algorithm puts each rank's element exactly once into every output") {
  for (auto algorithm : all_reduce_names())
    for (uint32_t world_size = 1; world_size <= 17; ++world_size)
      for (auto count : all_reduce_counts(world_size)) {
        CAPTURE(algorithm);
        CAPTURE(world_size);
        CAPTURE(count);
        auto result = prove_all_reduce(plan_all(algorithm, world_size, count), count, world_size * 7919 + count);
        CHECK_MESSAGE(!result.fault, render(result.fault));
      }
}

TEST_CASE("schedule: the order of events does not matter") {
  for (auto algorithm : all_reduce_names()) {
    auto ranks = plan_all(algorithm, 5, 13);
    for (uint64_t seed = 0; seed < 200; ++seed) {
      CAPTURE(seed);
      const auto found = prove_all_reduce(ranks, 13, seed);
      CHECK_MESSAGE(!found.fault, render(found.fault));
    }
  }
}

TEST_CASE("schedule: every algorithm works for large worlds") {
  for (auto algorithm : all_reduce_names())
    for (uint64_t count : {1, 63, 64, 65, 257}) {
      CAPTURE(algorithm);
      CAPTURE(count);
      const auto found = prove_all_reduce(plan_all(algorithm, 64, count), count, count);
      CHECK_MESSAGE(!found.fault, render(found.fault));
    }
}

TEST_CASE("schedule: the ring takes the rounds, steps and bytes that its formula says") {
  for (uint32_t world_size = 2; world_size <= 17; ++world_size)
    for (auto count : all_reduce_counts(world_size)) {
      CAPTURE(world_size);
      CAPTURE(count);
      auto ranks = plan_all("ring", world_size, count);
      auto result = prove_all_reduce(ranks, count, 1);
      uint64_t steps = 0;
      for (uint32_t rank = 0; rank < world_size; ++rank) {
        CHECK(ranks[rank].rounds == (count == 0 ? 0 : 2 * (world_size - 1)));
        CHECK(ranks[rank].scratch_count == 0);
        CHECK(result.elements_sent[rank]
              == 2 * count - block_size(count, world_size, rank + 1) - block_size(count, world_size, rank + 2));
        CHECK(result.elements_received[rank]
              == 2 * count - block_size(count, world_size, rank) - block_size(count, world_size, rank + 1));
        CHECK(result.elements_sent[rank] <= 2 * (world_size - 1) * ((count + world_size - 1) / world_size));
        steps += ranks[rank].steps.size();
      }
      CHECK(steps == 4 * (world_size - 1) * blocks_of(count, world_size));
    }
}

TEST_CASE("schedule: the naive algorithm takes the rounds, steps and bytes that its formula says") {
  for (uint32_t world_size = 2; world_size <= 17; ++world_size)
    for (auto count : all_reduce_counts(world_size)) {
      CAPTURE(world_size);
      CAPTURE(count);
      auto ranks = plan_all("naive", world_size, count);
      auto result = prove_all_reduce(ranks, count, 1);
      for (uint32_t rank = 0; rank < world_size; ++rank) {
        auto peers = rank == 0 ? world_size - 1 : 1;
        CHECK(ranks[rank].rounds == (count == 0 ? 0 : world_size));
        CHECK(result.elements_sent[rank] == peers * count);
        CHECK(result.elements_received[rank] == peers * count);
        CHECK(ranks[rank].steps.size() == (count == 0 ? 0 : 2 * peers));
      }
    }
}

TEST_CASE("schedule: numbers are added in the order that the algorithm states") {
  const uint32_t world_size = 7;
  const uint64_t count = 103;
  std::mt19937_64 random{42};
  std::uniform_real_distribution<double> values{-1, 1};
  std::vector<rank_memory<double>> memory(world_size);
  for (auto& rank : memory)
    for (uint64_t i = 0; i < count; ++i)
      rank.input.push_back(values(random));
  auto average_from = [&](uint32_t first, uint64_t i) {
    auto sum = memory[first].input[i];
    for (uint32_t k = 1; k < world_size; ++k)
      sum += memory[(first + k) % world_size].input[i];
    return sum / world_size;
  };
  for (std::string_view name : {"ring", "naive"}) {
    auto result = interpret_on(memory, plan_all(name, world_size, count), count, 3, std::plus<double>{},
                               [&](double x) { return x / world_size; });
    REQUIRE_MESSAGE(!result.fault, render(result.fault));
    for (uint32_t block = 0; block < world_size; ++block) {
      auto range = block_of(buffer::output, count, world_size, block);
      for (auto i = range.offset; i < range.offset + range.count; ++i)
        for (auto& rank : memory)
          CHECK(rank.output[i] == average_from(name == "ring" ? block : 0, i));
    }
  }
}

TEST_CASE("schedule: a request that makes no sense is refused with a sentence") {
  auto text_of = [](const caf::expected<schedule>& x) {
    REQUIRE(!x);
    CHECK(code_of(x.error()) == errc::invalid_argument);
    return render(x.error());
  };
  CHECK(text_of(plan(proto::ALL_REDUCE, "rnig", {.world_size = 4, .count = 8}))
          .starts_with("there is no algorithm \"rnig\" for all_reduce; there are: ring, "));
  CHECK(text_of(plan(proto::ALL_TO_ALL, "bruck", {.world_size = 2, .counts = {1, 2, 3, 4}}))
        == "bruck packs all_to_all's blocks by number and wants them all of one size: with counts by rank, take "
           "pairwise");
  CHECK(text_of(plan(proto::ALL_REDUCE, "ring", {.world_size = 0, .count = 8}))
        == "a collective wants at least one rank, and the world size is 0");
  CHECK(text_of(plan(proto::ALL_REDUCE, "ring", {.world_size = 4, .rank = 4, .count = 8}))
        == "there is no rank 4 in a world of 4: ranks are 0 to 3");
}
