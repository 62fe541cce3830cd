#include "training/computed/step_world.hpp"

#include "tests/support/training/training_jobs.hpp"

#include <doctest/doctest.h>

using namespace ringmaster::training;

TEST_CASE("step_world: after the loss of any rank the remaining ranks go on, by any strategy") {
  uint64_t worlds = 0, stood_in = 0;
  for (auto& strategy : strategies()) {
    if (strategy.needs != beyond::nothing)
      continue;
    CAPTURE(strategy.name);
    for (uint64_t batch : {24, 33}) {
      for (uint32_t chunks : {1u, 2u}) {
        auto job = small_job(strategy.name, 16, batch, 1);
        job.shape.chunks = chunks;
        for (uint32_t ranks = 2; ranks <= 8; ++ranks) {
          CAPTURE(ranks);
          if (!can_train(job, {ranks, sides_of(job.shape)}))
            continue;
          for (uint32_t left = 1; left < ranks; ++left) {
            CAPTURE(left);
            const auto found = step_world_of(job, left);
            CHECK(found.ranks > 0);
            CHECK(found.ranks <= left);
            ++worlds;
            stood_in += found.sides.stands_in ? 1 : 0;
          }
        }
      }
    }
  }
  CHECK(worlds > 300);
  CHECK(stood_in > 10);
}

TEST_CASE("step_world: another strategy stands in where its own lets no number of those that are left train") {
  const auto odd = small_job("interleaved", 8, 33, 1);
  CHECK(!step_world_of(odd, 3).sides.stands_in);
  const auto two = step_world_of(odd, 2); // 33 micro-batches are no multiple of 2
  CHECK(two.ranks == 2);
  CHECK(two.sides.stands_in);
  CHECK(strategy_for(odd, two.sides).name == "1f1b");
  const auto even = small_job("interleaved", 8, 32, 1);
  CHECK(!step_world_of(even, 2).sides.stands_in);
  CHECK(step_world_of(even, 3).ranks == 2); // one has nothing to do
  CHECK(step_world_of(even, 1).sides.stands_in);
  auto told = small_job("interleaved", 16, 32, 1);
  told.shape.tensor = told.shape.data = 2; // and 2 stages, of 8 ranks
  CHECK(can_train(told, {8, sides_of(told.shape)}));
  const auto left = step_world_of(told, 7);
  CHECK(left.ranks == 4); // one group of 2 stages, as configured except the other
  CHECK(left.sides == parallel_sizes{2, 1, 0, false});
}

TEST_CASE("step_world: what had no room is not tried again, nor with fewer ranks, but others are") {
  const auto job = small_job("dualpipe", 8, 32, 1);
  const auto own = step_world_of(job, 3);
  CHECK(own == step_world{2, {}});
  const step_world none[] = {own};
  const auto other = step_world_of(job, 3, none);
  CHECK(other.ranks == 3);
  CHECK(other.sides.stands_in);
  const step_world both[] = {own, other};
  CHECK(step_world_of(job, 3, both).ranks == 0);
  CHECK(step_world_of(job, 4, both) == step_world{4, {}});
}
