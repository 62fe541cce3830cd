// Training on devices, in virtual time.
#include "tests/support/training/simulated_training.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

TEST_CASE("every strategy trains on devices to the very bits of its program in one thread") {
  for (auto& which : strategies()) {
    CAPTURE(which.name);
    constexpr uint32_t ranks = 4;
    auto job = small_job(which.name, 8, 10, 2);
    if (which.check(job.shape, ranks))
      continue;
    computed_world alone{job, ranks, 4 << 20};
    double loss = 0;
    for (int i = 0; i < 3; ++i) {
      auto sums = alone.run_step();
      REQUIRE(sums);
      loss = sums->loss / static_cast<double>(sums->samples);
    }
    simulated_cluster cluster{training_devices(ranks)};
    simulated_training run{cluster, small_job(which.name, 8, 10, 2), ranks, 3};
    run.run();
    REQUIRE(run.problem() == "");
    REQUIRE(run.reports.size() == 3);
    CHECK(run.reports[2].loss == loss);
    for (uint32_t layer = 0; layer < 8; ++layer)
      CHECK(run.weights(layer) == weights_of(alone, job, layer));
    CHECK(run.notes.empty());
  }
}

TEST_CASE("whoever dies at whichever message, the others end with one rank's weights") {
  constexpr int steps = 5;
  constexpr uint64_t batch = 10;
  const auto alone = weights_alone(batch, steps);
  const auto all = strategies();
  uint64_t recovered = 0, done_again = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    std::mt19937_64 random{seed};
    const auto& which = all[seed % all.size()];
    auto job = small_job(which.name, 8, batch, 2);
    const uint32_t ranks = 2 + random() % 3;
    if (which.check(job.shape, ranks))
      continue;
    CAPTURE(seed);
    CAPTURE(which.name);
    CAPTURE(ranks);
    simulated_cluster cluster{training_devices(ranks + 1, seed + 1)};
    simulated_training run{cluster, std::move(job), ranks, steps};
    run.settings.mirror = random() % 2 == 0;
    run.settings.image_every = random() % 2;
    run.start();
    run.run_messages(random() % 3000);
    const auto first = random() % ranks;
    run.kill(first);
    if (seed % 3 == 0 && ranks > 2) { // and another one, maybe while the others give up
      run.run_messages(random() % 400);
      run.kill((first + 1) % ranks);
    }
    run.finish();
    if (run.problem() != "") {
      FAIL_CHECK(run.problem());
      continue;
    }
    recovered += run.notes.empty() ? 0 : 1;
    done_again += run.reports.size() - steps;
    for (uint32_t layer = 0; layer < 8; ++layer)
      CHECK(distance(run.weights(layer), alone[layer]) < 1e-12);
  }
  CHECK(recovered > 400);
  CHECK(done_again > 100); // where a part of the model was lost
}
