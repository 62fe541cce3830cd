#include "tools/bench/memory_limit.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

namespace {

float value(uint32_t rank, uint64_t index) {
  return static_cast<float>((rank * 7 + index) % 13);
}

float expected(proto::CollectiveKind kind, const plan_request& request, uint32_t rank, uint64_t index) {
  auto source = meaning_of(kind, request, rank, index);
  if (!source.all_ranks)
    return value(source.rank, source.index);
  float sum = 0;
  for (uint32_t r = 0; r < request.world_size; ++r)
    sum += value(r, source.index);
  return sum;
}

/// Elements of all outputs that are wrong.
uint64_t wrong_after(proto::CollectiveKind kind, const plan_request& request, uint32_t parts, bool past_caches) {
  std::vector<std::vector<float>> in(request.world_size), out(request.world_size);
  std::vector<const float*> inputs;
  std::vector<float*> outputs;
  for (uint32_t rank = 0; rank < request.world_size; ++rank) {
    for (uint64_t i = 0; i < input_count(kind, request, rank); ++i)
      in[rank].push_back(value(rank, i));
    out[rank].resize(output_count(kind, request, rank), -1);
    inputs.push_back(in[rank].data());
    outputs.push_back(out[rank].data());
  }
  auto work = transfers_of(kind, request, inputs, outputs);
  for (uint32_t part = 0; part < parts; ++part)
    run_part(work, part, parts, past_caches);
  uint64_t wrong = 0;
  for (uint32_t rank = 0; rank < request.world_size; ++rank)
    for (uint64_t i = 0; i < out[rank].size(); ++i)
      wrong += out[rank][i] != expected(kind, request, rank, i) ? 1 : 0;
  return wrong;
}

} // namespace

TEST_CASE("plain loop: does every collective, in any number of parts") {
  for (auto kind : collective_kinds())
    for (uint32_t ranks : {2u, 3u, 11u})
      for (uint64_t count : {1u, 5u, 2500u})
        for (uint32_t parts : {1u, 3u})
          for (auto past_caches : {false, true}) {
            plan_request request{.world_size = ranks, .count = count, .root = 1, .peer = 0};
            CAPTURE(name_of(kind));
            CAPTURE(ranks);
            CAPTURE(count);
            CHECK(wrong_after(kind, request, parts, past_caches) == 0);
          }
}

TEST_CASE("plain loop: in place, the root's own block stays where it is") {
  std::vector<float> root(4), other(4);
  plan_request request{.world_size = 2, .count = 4, .root = 0};
  auto work = transfers_of(proto::BROADCAST, request, {root.data(), other.data()}, {root.data(), other.data()});
  REQUIRE(work.size() == 1);
  CHECK(work[0].to == std::vector<float*>{other.data()});
}
