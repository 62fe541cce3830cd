#include "runtime/algorithms/registry.hpp"
#include "runtime/selection/process_costs.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace ringmaster;

namespace {

process_work work_of(const char* name, uint32_t ranks, uint64_t count, uint32_t cores,
                     uint64_t cache_bytes = 1u << 30) {
  process_constants machine{.cores = cores, .cache_bytes = cache_bytes};
  return *work_in_process(**find_algorithm(proto::ALL_REDUCE, name), {.world_size = ranks, .count = count}, 4, machine);
}

} // namespace

TEST_CASE("process costs: all ranks of a ring work all the time, so cores share the work") {
  auto alone = work_of("ring", 8, 8000, 8), shared = work_of("ring", 8, 8000, 2);
  CHECK(alone.steps == 14);
  CHECK(alone.messages == 28); // one sent and one received in each round
  CHECK(alone.copied_bytes == 7 * 4000);
  CHECK(alone.reduced_bytes == 7 * 4000);
  CHECK(shared.steps == alone.steps);
  CHECK(shared.messages == 4 * alone.messages);
  CHECK(shared.copied_bytes == 4 * alone.copied_bytes);
  CHECK(shared.reduced_bytes == 4 * alone.reduced_bytes);
  CHECK(work_of("ring", 8, 8000, 1024).copied_bytes == alone.copied_bytes); // more cores than ranks do not help
}

TEST_CASE("process costs: the work of one rank is not faster with more cores") {
  auto work = work_of("naive", 8, 8000, 2);
  CHECK(work.reduced_bytes == 7 * 32000);    // all at rank 0
  CHECK(work.copied_bytes == 7 * 32000 / 2); // at seven ranks at once
}

TEST_CASE("process costs: buffers larger than the caches cause memory traffic") {
  CHECK(work_of("ring", 8, 8000, 2).traffic_bytes == 0);
  auto work = work_of("ring", 8, 8000, 2, 8 * 32000); // half of the inputs and outputs
  CHECK(work.traffic_bytes == doctest::Approx(0.5 * (2 + 3) * 8 * 7 * 4000));
}

TEST_CASE("process costs: a shared-memory operation moves each byte once") {
  auto work = work_of("direct", 8, 8000, 2);
  CHECK(work.joint);
  CHECK(work.bytes == 2 * 8 * 32000);
  process_constants machine{.joint = {.operation_s = 1, .rank_s = 0.5, .bandwidth = 512000}};
  CHECK(estimate(work, machine).total_s() == doctest::Approx(1 + 8 * 0.5 + 1));
}

TEST_CASE("process costs: an estimate is the sum of features times constants") {
  process_constants machine{.cores = 2,
                            .operation_s = 1,
                            .rank_s = 2,
                            .step_s = 3,
                            .message_s = 5,
                            .bandwidth = 0.5,
                            .reduction_rate = 0.25,
                            .memory_bandwidth = 0.125};
  process_work work{.ranks = 2, .steps = 3, .messages = 4, .copied_bytes = 5, .reduced_bytes = 6, .traffic_bytes = 7};
  CHECK(work.features() == std::vector<double>{1, 2, 3, 4, 5, 6, 7});
  CHECK(estimate(work, machine).total_s() == doctest::Approx(1 + 4 + 9 + 20 + 10 + 24 + 56));
}

TEST_CASE("process costs: the candidates come cheapest first") {
  process_constants machine{.cores = 2,
                            .operation_s = 20e-6,
                            .message_s = 2e-6,
                            .bandwidth = 1e10,
                            .reduction_rate = 1e10,
                            .memory_bandwidth = 1e10,
                            .joint = {.operation_s = 15e-6, .bandwidth = 1e10}};
  auto all = candidates_in_process(proto::ALL_REDUCE, {.world_size = 8, .count = 1000}, 4, machine);
  REQUIRE(all);
  CHECK(all->front().which->is.joint);
  CHECK(std::is_sorted(all->begin(), all->end(), [](auto& a, auto& b) { return a.time.total_s() < b.time.total_s(); }));
  CHECK(!candidates_in_process(proto::BROADCAST, {.world_size = 4, .count = 8, .root = 4}, 4, machine));
}
