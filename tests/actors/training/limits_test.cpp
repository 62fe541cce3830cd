// What a TRAINER waits for, and for how long, if a rank is silent.
#include "actors/training/training_rank.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tests/actors/training/silent_rank.hpp"
#include "tests/support/text_search.hpp"
#include "tests/support/training/one_layer.hpp"
#include "tests/support/training/silent_proxy.hpp"
#include "tests/support/training/simulated_training.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

/// Each rank trains on all samples by itself.
strategy run_alone(rank& self, const model& m) {
  auto [w, state] = co_await self.load_weights(0);
  auto x = co_await self.input({0, m.global_batch});
  auto by_weight = co_await gradient_by(self, w, x);
  co_await self.update(w, state, std::move(by_weight));
  co_await self.finish(std::move(w));
}

const known_strategy alone{.name = "alone",
                           .what = "every rank has everything",
                           .run = run_alone,
                           .check = check_data_parallel,
                           .cut = batch_cut::never};

/// Two ranks, of which the first reports all of the model after step 0, and is silent from then on.
struct run_beside_silence {
  run_beside_silence() : cluster{training_devices(2)}, run{cluster, job_of_one_layer(), 2, 4} {
    run.settings.starts_ranks = false;
    run.settings.image_every = 100;
    run.settings.watcher.image = [this](const model_snapshot& x) { images.push_back(x.step); };
  }

  void start() {
    run.start();
    auto ends_step_0 = [of = run.handle](const step_order& x, rank_actor::pointer self) {
      if (x.step == 0)
        self->send(of,
                   rank_ended{.attempt = x.attempt,
                              .rank = x.rank,
                              .losses = {.loss = 1, .samples = 1},
                              .made = {whole_part(value_kind::weight, 0), whole_part(value_kind::optimizer_state, 0)},
                              .events = {}});
    };
    const auto silent = run.settings.devices[0];
    cluster.sys.spawn(silent_rank, run.handle, rank_ready{silent, 0, caf::none, {}}, ends_step_0);
    rank_settings its;
    its.job = run.job;
    its.coordinator = cluster.host;
    its.trainer = run.handle;
    its.device = run.settings.devices[1];
    its.place = 1;
    cluster.sys.spawn(training_rank, its);
    run.run_steps(1);
  }

  static training_job job_of_one_layer() {
    auto job = small_job("ddp", 1, 6, 6);
    job.strategy = &alone;
    return job;
  }

  caf::actor_clock::time_point now() const { return cluster.scheduler.clock().now(); }

  simulated_cluster cluster;
  simulated_training run;
  std::vector<uint64_t> images;
};

} // namespace

TEST_CASE("limits: a run that is asked to stop waits some seconds for the model of a silent rank") {
  run_beside_silence x;
  x.start();
  const auto asked_at = x.now();
  x.cluster.self->send(x.run.handle, atom::expire_v);
  x.run.finish();
  CHECK_MESSAGE(contains(x.run.problem(), "the run was asked to stop"), x.run.problem());
  CHECK(x.run.notes_with("the model as of step 1 could not be saved: not all of it arrived within 5 s") == 1);
  CHECK(x.images.empty());
  CHECK(x.now() - asked_at <= std::chrono::seconds{10}); // for the model, and for its memory
}

TEST_CASE("limits: a run without coordinator ends at once, and its ranks do not wait for answers") {
  for (uint32_t ranks : {1u, 2u, 4u}) {
    CAPTURE(ranks);
    simulated_cluster cluster{training_devices(ranks)};
    remote_coordinator coordinator{cluster};
    simulated_training run{cluster, small_job("ddp", 2, 4, 4 / ranks), ranks, 100};
    run.settings.coordinator = coordinator.handle();
    run.start();
    run.run_steps(3);
    REQUIRE(!run.outcome);
    const auto closed_at = cluster.scheduler.clock().now();
    coordinator.close();
    run.finish();
    CHECK_MESSAGE(contains(run.problem(), "the coordinator has exited or is unreachable, in step "), run.problem());
    CHECK(cluster.scheduler.clock().now() - closed_at < std::chrono::seconds{1});
  }
}

TEST_CASE("limits: a rank that does not send its parts costs a snapshot, and the others continue without it") {
  run_beside_silence x;
  x.run.settings.image_every = 1;
  x.start();
  x.run.finish();
  REQUIRE(x.run.problem() == "");
  CHECK(x.run.notes_with("the host has no model as of step 1, and keeps the one before: ") == 1);
  CHECK(x.run.notes_with("no longer answers, and had a part of layer 0") >= 1);
  CHECK(x.run.reports.back().ranks == 1);
  CHECK(x.images.back() == 4);
}

TEST_CASE("limits: without memory there is no second copy of the model, one note says so, and training continues") {
  // Weights and Adam's two arrays in float64, and the copies of two steps.
  constexpr uint64_t layers = 3;
  const auto job = small_job("zero3", layers, 6, 2);
  uint64_t elements = 0;
  for (auto& each : job.layers)
    elements += each->elements({});
  const auto needed = 2 * 3 * elements * sizeof(double);
  for (const auto there : {needed - 1, needed}) {
    CAPTURE(there);
    simulated_cluster cluster{training_devices(2)};
    simulated_training run{cluster, job, 2, 6};
    run.settings.mirror = true;
    run.settings.free_memory = [there] { return there; };
    run.start();
    run.run_steps(3);
    run.kill(1);
    run.finish();
    REQUIRE(run.problem() == "");
    const bool is_left_out = there < needed;
    CHECK(run.notes_with(fmt::format("the second copy of the model is omitted: it needs {} of memory, and {} are free "
                                     "here; ",
                                     bytes_text(needed), bytes_text(there)))
          == (is_left_out ? 1 : 0));
    CHECK(run.notes_with("back to the first weights") == (is_left_out ? 1 : 0));
    CHECK(run.notes_with("back to step") == 0);
    const auto alone = weights_alone(6, 6, layers);
    for (uint32_t layer = 0; layer < layers; ++layer)
      CHECK(distance(run.weights(layer), alone[layer]) < 1e-12);
  }
}

TEST_CASE("limits: a training leaves no timeouts, however many snapshots it takes") {
  simulated_cluster cluster{training_devices(2)};
  simulated_training run{cluster, small_job("zero3", 3, 6, 2), 2, 40};
  run.settings.mirror = true;
  std::vector<size_t> timeouts;
  run.settings.watcher.step_done = [&](auto&) { timeouts.push_back(cluster.scheduler.clock().schedule().size()); };
  run.run();
  REQUIRE(run.problem() == "");
  REQUIRE(timeouts.size() == 40);
  CHECK(timeouts.back() <= timeouts[4] + 5);
}
