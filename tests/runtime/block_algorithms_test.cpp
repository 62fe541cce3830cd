#include "tests/support/schedule_interpreter.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
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
  {proto::ALL_REDUCE, "ring"},         {proto::ALL_REDUCE, "halving_doubling"},
  {proto::ALL_REDUCE, "direct"},       {proto::ALL_REDUCE, "one_shot"},
  {proto::REDUCE, "halving"},          {proto::REDUCE, "direct"},
  {proto::BROADCAST, "direct"},        {proto::BROADCAST, "scatter_all_gather"},
  {proto::ALL_GATHER, "ring"},         {proto::ALL_GATHER, "naive"},
  {proto::ALL_GATHER, "butterfly"},    {proto::ALL_GATHER, "bruck"},
  {proto::ALL_GATHER, "direct"},       {proto::REDUCE_SCATTER, "ring"},
  {proto::REDUCE_SCATTER, "naive"},    {proto::REDUCE_SCATTER, "pairwise"},
  {proto::REDUCE_SCATTER, "halving"},  {proto::REDUCE_SCATTER, "direct"},
  {proto::ALL_TO_ALL, "pairwise"},     {proto::ALL_TO_ALL, "naive"},
  {proto::ALL_TO_ALL, "bruck", false}, {proto::ALL_TO_ALL, "direct"},
  {proto::GATHER, "tree"},             {proto::GATHER, "naive"},
  {proto::GATHER, "direct"},           {proto::SCATTER, "tree"},
  {proto::SCATTER, "naive"},           {proto::SCATTER, "direct"},
};

std::vector<schedule> plan_all(const entry& x, plan_request request) {
  std::vector<schedule> ranks;
  for (request.rank = 0; request.rank < request.world_size; ++request.rank) {
    auto planned = plan(x.kind, x.name, request);
    REQUIRE(planned);
    ranks.push_back(std::move(*planned));
  }
  return ranks;
}

/// The proof passes, and what was counted on the way is what the cost function says.
void check(const entry& x, const plan_request& request) {
  auto what = fmt::format("{} {}: {} ranks, root {}, count {}, counts {}", x.name, name_of(x.kind), request.world_size,
                          request.root, request.count, request.counts.size());
  CAPTURE(what);
  auto found = prove(x.kind, request, plan_all(x, request), request.world_size * 7919 + request.count);
  REQUIRE(found.fault == "");
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

TEST_CASE("block algorithms: one rank alone copies, and nothing is nothing") {
  for (auto& x : entries) {
    for (uint64_t count : {1, 100})
      check(x, {.world_size = 1, .count = count});
    for (auto& ranks : {plan_all(x, {.world_size = 5}), plan_all(x, {.world_size = 1})})
      for (auto& rank : ranks)
        CHECK(rank == schedule{});
    if (has_v_variant(x.kind) && x.takes_counts)
      for (auto& rank : plan_all(x, {.world_size = 2, .counts = std::vector<uint64_t>(x.kind == proto::ALL_TO_ALL ? 4 : 2)}))
        CHECK(rank == schedule{});
  }
}
