#include "runtime/algorithms/parts/pieces.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/proof/proof.hpp"
#include "tests/support/port_model.hpp"
#include "tests/support/schedule_interpreter.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <set>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

struct subject {
  proto::CollectiveKind kind;
  std::string_view name;

  bool is_pipelined() const { return name == "chain" || name == "double_tree" || name == "ring_pipelined"; }
};

const std::vector<subject> subjects{
  {proto::ALL_REDUCE, "naive"},      {proto::ALL_REDUCE, "tree"},       {proto::ALL_REDUCE, "double_tree"},
  {proto::ALL_REDUCE, "chain"},      {proto::ALL_REDUCE, "butterfly"},  {proto::ALL_REDUCE, "ring_pipelined"},
  {proto::REDUCE, "naive"},          {proto::REDUCE, "tree"},           {proto::REDUCE, "double_tree"},
  {proto::REDUCE, "chain"},          {proto::BROADCAST, "naive"},       {proto::BROADCAST, "tree"},
  {proto::BROADCAST, "double_tree"}, {proto::BROADCAST, "chain"},       {proto::BARRIER, "naive"},
  {proto::BARRIER, "tree"},          {proto::BARRIER, "dissemination"}, {proto::SEND_RECV, "direct"},
};

const std::vector<uint32_t> world_sizes{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 32, 33, 64};

/// Every root for small worlds; some for the others.
std::set<uint32_t> roots_for(const subject& x, uint32_t world_size) {
  if (!has_root(x.kind))
    return {0};
  if (world_size > 17)
    return {0, world_size / 2 + 1};
  if (world_size > 9)
    return {0, 1, 2, world_size - 1};
  std::set<uint32_t> all;
  for (uint32_t root = 0; root < world_size; ++root)
    all.insert(root);
  return all;
}

std::set<uint64_t> counts_for(const subject& x, uint64_t world_size) {
  if (x.kind == proto::BARRIER)
    return {0};
  return {0, 1, 2, 3, world_size - 1, world_size, world_size + 1, 100, 101, 14 * world_size, 3 * default_chunk + 5};
}

std::vector<uint64_t> chunks_for(const subject& x, uint64_t count) {
  if (!x.is_pipelined())
    return {0};
  return count > default_chunk ? std::vector<uint64_t>{0, 9999} : std::vector<uint64_t>{0, 1, 7};
}

std::vector<plan_request> requests_for(const subject& x, uint32_t world_size) {
  std::vector<plan_request> result;
  if (x.kind == proto::SEND_RECV && world_size == 1)
    return result; // there is no peer
  for (auto root : roots_for(x, world_size))
    for (auto count : counts_for(x, world_size))
      for (auto chunk : chunks_for(x, count))
        for (uint32_t distance = 1; distance == 1 || (x.kind == proto::SEND_RECV && distance < world_size); ++distance)
          result.push_back({.world_size = world_size,
                            .count = count,
                            .root = root,
                            .peer = (root + distance) % world_size,
                            .chunk = chunk});
  return result;
}

/// All blocks and pieces have the same size.
bool is_cut_evenly(const subject& x, const plan_request& request) {
  if (!x.is_pipelined())
    return true;
  const auto parts = x.name == "chain" ? 1 : x.name == "double_tree" ? 2 : request.world_size;
  const auto part = request.count / parts;
  const auto piece = std::min(part, request.chunk == 0 ? default_chunk : request.chunk);
  return request.count % parts == 0 && (part == 0 || part % piece == 0);
}

uint64_t largest(const std::vector<uint64_t>& x) {
  return *std::max_element(x.begin(), x.end());
}

void check_proof_and_cost(const subject& x, const plan_request& request) {
  CAPTURE(name_of(x.kind));
  CAPTURE(x.name);
  CAPTURE(request.world_size);
  CAPTURE(request.count);
  CAPTURE(request.root);
  CAPTURE(request.peer);
  CAPTURE(request.chunk);
  auto ranks = planned(x.kind, x.name, request);
  auto found = prove(x.kind, request, ranks, request.world_size * 7919 + request.count);
  REQUIRE_MESSAGE(!found.fault, render(found.fault));
  auto cost = cost_of(x.kind, x.name, request);
  REQUIRE(cost);
  CHECK(found.rounds == cost->rounds);
  CHECK(largest(found.elements_sent) == cost->elements);
  CHECK(std::max(largest(found.messages_sent), largest(found.messages_received)) == cost->messages);
  for (auto [latency, per_element] : {std::pair{1, 0}, {0, 1}, {1000, 3}}) {
    auto time = port_model_time(ranks, latency, per_element);
    auto predicted = cost->latencies * latency + cost->serial_elements * per_element;
    CHECK(time <= predicted);
    if (is_cut_evenly(x, request))
      CHECK(time == predicted);
  }
}

std::vector<rank_memory<double>> random_inputs(const subject& x, const plan_request& request) {
  std::mt19937_64 random{42};
  std::uniform_real_distribution<double> values{-1, 1};
  std::vector<rank_memory<double>> memory(request.world_size);
  for (uint32_t rank = 0; rank < request.world_size; ++rank)
    for (uint64_t i = 0; i < input_count(x.kind, request, rank); ++i)
      memory[rank].input.push_back(values(random));
  return memory;
}

/// What all ranks' averages come to, on `seed`'s order of events.
std::vector<rank_memory<double>> average(const subject& x, const plan_request& request, uint64_t seed) {
  auto memory = random_inputs(x, request);
  auto result = interpret_on(memory, planned(x.kind, x.name, request), buffer_counts_of(x.kind, request), seed,
                             std::plus<double>{}, [&](double sum) { return sum / request.world_size; });
  REQUIRE_MESSAGE(!result.fault, render(result.fault));
  return memory;
}

/// In rank order, as a loop would.
std::vector<double> plain_average(const std::vector<rank_memory<double>>& memory) {
  auto result = memory[0].input;
  for (size_t rank = 1; rank < memory.size(); ++rank)
    for (size_t i = 0; i < result.size(); ++i)
      result[i] += memory[rank].input[i];
  for (auto& x : result)
    x /= static_cast<double>(memory.size());
  return result;
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

} // namespace

TEST_CASE("tree algorithms: each is proved, and costs what it says, for every world, root, count and chunk") {
  for (const auto& x : subjects)
    for (auto world_size : world_sizes)
      for (const auto& request : requests_for(x, world_size))
        check_proof_and_cost(x, request);
}

TEST_CASE("tree algorithms: each is proved, and costs what it says, for a thousand ranks") {
  for (const auto& x : subjects)
    for (uint32_t world_size : {1000, 1024}) {
      if (x.name == "ring_pipelined")
        world_size = world_size / 8 + 1; // its steps grow with the square
      check_proof_and_cost(x, {.world_size = world_size,
                               .count = x.kind == proto::BARRIER ? 0u : 2023u,
                               .root = has_root(x.kind) ? 3u : 0u,
                               .peer = 4,
                               .chunk = 500});
    }
}

TEST_CASE("tree algorithms: all ranks end with the same bits, whatever the order of events") {
  for (const auto& x : subjects) {
    if (x.kind != proto::ALL_REDUCE)
      continue;
    for (uint32_t world_size : {2, 3, 4, 5, 7, 8, 13, 16, 17})
      for (uint64_t count : {1, 2, 103}) {
        CAPTURE(x.name);
        CAPTURE(world_size);
        CAPTURE(count);
        plan_request request{.world_size = world_size, .count = count, .chunk = 7};
        auto first = average(x, request, 1);
        auto again = average(x, request, 2);
        auto expected = plain_average(first);
        for (uint32_t rank = 0; rank < world_size; ++rank) {
          CHECK(same_bits(first[rank].output, first[0].output));
          CHECK(same_bits(again[rank].output, first[0].output));
        }
        for (uint64_t i = 0; i < count; ++i) // |x| < 1, so each of N-1 additions and the division err by < N x 2^-53
          CHECK(std::abs(first[0].output[i] - expected[i]) <= 2 * world_size * std::ldexp(1, -53));
      }
  }
}

TEST_CASE("tree algorithms: the naive reduction adds in rank order for every root") {
  const subject naive{proto::REDUCE, "naive"};
  for (uint32_t world_size : {2, 3, 4, 7})
    for (uint32_t root = 0; root < world_size; ++root) {
      CAPTURE(world_size);
      CAPTURE(root);
      auto memory = average(naive, {.world_size = world_size, .count = 103, .root = root}, 1);
      CHECK(same_bits(memory[root].output, plain_average(memory)));
    }
}

TEST_CASE("tree algorithms: the pipelined ring with one piece a block is the ring, and adds like it with any") {
  const subject ring{proto::ALL_REDUCE, "ring"};
  const subject pipelined{proto::ALL_REDUCE, "ring_pipelined"};
  for (uint32_t world_size : {2, 3, 5, 8})
    for (uint64_t count : {1, 4, 40, 103}) {
      CAPTURE(world_size);
      CAPTURE(count);
      plan_request request{.world_size = world_size, .count = count};
      CHECK(planned(pipelined.kind, pipelined.name, request) == planned(ring.kind, ring.name, request));
      CHECK(cost_of(proto::ALL_REDUCE, "ring_pipelined", request) == cost_of(proto::ALL_REDUCE, "ring", request));
      auto in_one = average(ring, request, 1);
      request.chunk = 3;
      CHECK(same_bits(average(pipelined, request, 1)[0].output, in_one[0].output));
    }
}

TEST_CASE("tree algorithms: partial sums take no more scratch than two pieces where they are pipelined") {
  for (std::string_view name : {"chain", "double_tree"})
    for (const auto& rank : planned(proto::REDUCE, name, {.world_size = 13, .count = 1000, .root = 2, .chunk = 8}))
      CHECK(rank.scratch_count <= 16);
}

TEST_CASE("tree algorithms: a chunk that would make too many pieces is taken larger") {
  for (std::string_view name : {"chain", "double_tree", "ring_pipelined"}) {
    CAPTURE(name);
    plan_request request{.world_size = 2, .count = uint64_t{1} << 40, .chunk = 1};
    auto cost = cost_of(proto::ALL_REDUCE, name, request);
    REQUIRE(cost);
    CHECK(cost->rounds >= max_pieces / 2);
    CHECK(cost->rounds <= 4 * max_pieces + 8);
    auto planned = plan(proto::ALL_REDUCE, name, request);
    REQUIRE(planned);
    CHECK(planned->rounds == cost->rounds);
    CHECK(planned->steps.size() <= 4 * max_pieces);
  }
}
