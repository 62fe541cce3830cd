#include "runtime/algorithms/registry.hpp"
#include "runtime/simulation/simulation.hpp"
#include "tests/support/schedule_interpreter.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <random>
#include <set>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

struct entry {
  proto::CollectiveKind kind;
  std::string_view name;
  bool takes_counts = true; ///< If the kind does.
};

/// The algorithms that cut the elements into a block for each rank.
const entry entries[] = {
  {proto::ALL_REDUCE, "ring"},
  {proto::ALL_REDUCE, "halving_doubling"},
  {proto::ALL_REDUCE, "direct"},
  {proto::ALL_REDUCE, "one_shot"},
  {proto::ALL_REDUCE, "hierarchical"},
  {proto::REDUCE, "halving"},
  {proto::REDUCE, "direct"},
  {proto::BROADCAST, "direct"},
  {proto::BROADCAST, "scatter_all_gather"},
  {proto::BROADCAST, "hierarchical"},
  {proto::ALL_GATHER, "ring"},
  {proto::ALL_GATHER, "naive"},
  {proto::ALL_GATHER, "butterfly"},
  {proto::ALL_GATHER, "bruck"},
  {proto::ALL_GATHER, "direct"},
  {proto::ALL_GATHER, "hierarchical"},
  {proto::REDUCE_SCATTER, "ring"},
  {proto::REDUCE_SCATTER, "naive"},
  {proto::REDUCE_SCATTER, "pairwise"},
  {proto::REDUCE_SCATTER, "halving"},
  {proto::REDUCE_SCATTER, "direct"},
  {proto::REDUCE_SCATTER, "hierarchical"},
  {proto::ALL_TO_ALL, "hierarchical"},
  {proto::ALL_TO_ALL, "pairwise"},
  {proto::ALL_TO_ALL, "naive"},
  {proto::ALL_TO_ALL, "bruck", false},
  {proto::ALL_TO_ALL, "direct"},
  {proto::GATHER, "tree"},
  {proto::GATHER, "naive"},
  {proto::GATHER, "direct"},
  {proto::SCATTER, "tree"},
  {proto::SCATTER, "naive"},
  {proto::SCATTER, "direct"},
};

/// The proof passes, and what was counted on the way is what the cost function says.
void check(const entry& x, const plan_request& request) {
  auto what = fmt::format("{} {}: {} ranks, root {}, count {}, counts {}", x.name, name_of(x.kind), request.world_size,
                          request.root, request.count, request.counts.size());
  CAPTURE(what);
  auto found = prove(x.kind, request, planned(x.kind, x.name, request), request.world_size * 7919 + request.count);
  REQUIRE_MESSAGE(!found.fault, render(found.fault));
  auto largest = [](const std::vector<uint64_t>& values) { return *std::max_element(values.begin(), values.end()); };
  auto cost = cost_of(x.kind, x.name, request);
  REQUIRE(cost);
  CHECK(cost->rounds == found.rounds);
  CHECK(cost->elements == largest(found.elements_sent));
  CHECK(cost->messages == std::max(largest(found.messages_sent), largest(found.messages_received)));
}

std::set<uint64_t> counts_for(uint64_t world_size) {
  return {1, 2, 3, world_size - 1, world_size, world_size + 1, 100, 101};
}

/// Counts by rank: rising from nothing, one rank alone, every other rank nothing, by chance with many zeros, all alike.
std::vector<std::vector<uint64_t>> uneven_counts(proto::CollectiveKind kind, uint32_t world_size) {
  auto size = size_t{world_size} * (kind == proto::ALL_TO_ALL ? world_size : 1);
  std::vector<std::vector<uint64_t>> result(6, std::vector<uint64_t>(size));
  std::mt19937 random{world_size};
  for (size_t i = 0; i < size; ++i) {
    result[0][i] = i;
    result[1][i] = i == size / 2 ? 11 : 0;
    result[2][i] = i % 2 == 0 ? 3 : 0;
    result[3][i] = random() % 3 == 0 ? random() % 20 : 0;
    result[4][i] = 4;
    result[5][i] = i + 1 == size ? 5 : 0;
  }
  return result;
}

std::set<uint32_t> roots_for(proto::CollectiveKind kind, uint32_t world_size) {
  if (!has_root(kind))
    return {0};
  std::set<uint32_t> roots{0, 1, world_size / 2, world_size - 1};
  for (uint32_t root = 0; root < std::min(world_size, 9u); ++root)
    roots.insert(root);
  return roots;
}

/// The time that the cost function states against the simulator's, where an element takes `element_ps` on the wire.
void check_time(const entry& x, const plan_request& request, bool same_size, int64_t latency_ps, int64_t element_ps) {
  auto what = fmt::format("{} {}: {} ranks, root {}, count {}, counts {}, latency {}, element {}", x.name,
                          name_of(x.kind), request.world_size, request.root, request.count,
                          fmt::join(request.counts, ","), latency_ps, element_ps);
  CAPTURE(what);
  network net;
  net.link = {latency_ps, 1e12 / static_cast<double>(element_ps)};
  auto simulated = simulate(planned(x.kind, x.name, request), net, 1);
  REQUIRE(simulated);
  REQUIRE(simulated->stuck == "");
  auto cost = cost_of(x.kind, x.name, request);
  REQUIRE(cost);
  auto stated = static_cast<int64_t>(cost->latencies) * latency_ps
                + static_cast<int64_t>(cost->serial_elements) * element_ps;
  if (same_size)
    CHECK(simulated->time == stated);
  else
    CHECK(simulated->time <= stated);
}

void check_times(const entry& x, const plan_request& request, bool same_size) {
  for (auto [latency_ps, element_ps] : {std::pair{1000, 1}, {1, 1000}, {700, 300}})
    check_time(x, request, same_size, latency_ps, element_ps);
}

void check_world(const entry& x, uint32_t world_size) {
  for (auto root : roots_for(x.kind, world_size)) {
    for (auto count : counts_for(world_size))
      check(x, {.world_size = world_size, .count = count, .root = root});
    if (has_v_variant(x.kind) && x.takes_counts)
      for (auto& counts : uneven_counts(x.kind, world_size))
        check(x, {.world_size = world_size, .root = root, .counts = counts});
  }
}

} // namespace

TEST_CASE("block algorithms: every one does what its kind says at the cost that it states") {
  for (auto& x : entries)
    for (uint32_t world_size = 2; world_size <= 17; ++world_size)
      check_world(x, world_size);
}

TEST_CASE("block algorithms: larger worlds, powers of two and their neighbours") {
  for (auto& x : entries)
    for (uint32_t world_size : {32, 33, 64})
      check_world(x, world_size);
}

TEST_CASE("block algorithms: on a uniform network they take the time that they state, or less with uneven blocks") {
  for (auto& x : entries)
    for (uint32_t world_size : {2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 16, 24, 33})
      for (auto root : roots_for(x.kind, world_size)) {
        // as many elements as any of them cuts into blocks of one size: N blocks, or the largest power of two
        const uint64_t divisible = has_v_variant(x.kind) ? 3 : 2 * world_size * std::bit_floor(world_size);
        check_times(x, {.world_size = world_size, .count = divisible, .root = root}, true);
        for (auto count : counts_for(world_size))
          check_times(x, {.world_size = world_size, .count = count, .root = root}, false);
        if (has_v_variant(x.kind) && x.takes_counts)
          for (auto& counts : uneven_counts(x.kind, world_size))
            check_times(x, {.world_size = world_size, .root = root, .counts = counts}, false);
      }
}

TEST_CASE("block algorithms: all ranks end with the same bits, direct ones with those of a loop over the ranks") {
  constexpr uint64_t count = 37;
  std::mt19937_64 random{20};
  std::uniform_real_distribution<double> digits{-1, 1};
  for (auto& x : entries) {
    if (!reduces(x.kind))
      continue;
    for (uint32_t world_size : {2, 3, 4, 5, 8, 11, 16, 17})
      for (auto root : roots_for(x.kind, world_size)) {
        plan_request request{.world_size = world_size, .count = count, .root = root};
        const auto counts = buffer_counts_of(x.kind, request);
        CAPTURE(x.name);
        CAPTURE(world_size);
        std::vector<rank_memory<double>> memory(world_size);
        for (auto& rank : memory)
          for (uint64_t i = 0; i < counts[0].input; ++i)
            rank.input.push_back(std::ldexp(digits(random), static_cast<int>(random() % 40)));
        auto walked = interpret_on(memory, planned(x.kind, x.name, request), counts, world_size, std::plus<double>{},
                                   [&](double sum) { return sum / world_size; });
        REQUIRE_MESSAGE(!walked.fault, render(walked.fault));
        const auto in_rank_order = x.name == "direct" || x.name == "one_shot" || x.name == "naive";
        for (uint32_t rank = 0; rank < world_size; ++rank)
          for (uint64_t i = 0; i < counts[rank].output; ++i) {
            if (x.kind == proto::ALL_REDUCE)
              CHECK(memory[rank].output[i] == memory[0].output[i]);
            if (in_rank_order) {
              const auto from = meaning_of(x.kind, request, rank, i);
              REQUIRE(from.all_ranks);
              auto sum = memory[0].input[from.index];
              for (uint32_t k = 1; k < world_size; ++k)
                sum += memory[k].input[from.index];
              CHECK(memory[rank].output[i] == sum / world_size);
            }
          }
      }
  }
}

TEST_CASE("block algorithms: Bruck's all_to_all refuses counts by rank for every caller") {
  plan_request request{.world_size = 2, .counts = {1, 2, 3, 4}};
  CHECK(!plan(proto::ALL_TO_ALL, "bruck", request));
  CHECK(!cost_of(proto::ALL_TO_ALL, "bruck", request));
  CHECK(plan(proto::ALL_TO_ALL, "pairwise", request));
}

TEST_CASE("block algorithms: one rank alone copies, and nothing is nothing") {
  for (auto& x : entries) {
    for (uint64_t count : {1, 100})
      check(x, {.world_size = 1, .count = count});
    for (auto& ranks : {planned(x.kind, x.name, {.world_size = 5}), planned(x.kind, x.name, {.world_size = 1})})
      for (auto& rank : ranks)
        CHECK(rank == schedule{});
    if (has_v_variant(x.kind) && x.takes_counts)
      for (auto size : {x.kind == proto::ALL_TO_ALL ? 4u : 2u})
        for (auto& rank : planned(x.kind, x.name, {.world_size = 2, .counts = std::vector<uint64_t>(size)}))
          CHECK(rank == schedule{});
  }
}
