// Training on devices, in virtual time.
#include "actors/calls/answers.hpp"
#include "actors/training/group_calls.hpp"
#include "tests/support/text_search.hpp"
#include "tests/support/training/coordinator_front.hpp"
#include "tests/support/training/layer_like.hpp"
#include "tests/support/training/one_layer.hpp"
#include "tests/support/training/simulated_training.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

/// A coordinator that refuses to destroy communicators a number of times.
coordinator_actor reluctant(simulated_cluster& cluster, uint32_t refusals) {
  return front_of(cluster, [refusals](caf::event_based_actor* self, const caf::actor& host) -> caf::behavior {
    auto left = std::make_shared<uint32_t>(refusals);
    return {[self, host, left](const proto::CommDestroyRequest& x) -> caf::result<proto::CommDestroyResponse> {
      if (*left == 0) {
        self->delegate(host, x);
        return caf::delegated<proto::CommDestroyResponse>{};
      }
      --*left;
      proto::CommDestroyResponse refused;
      set_error_in(refused, make_error(errc::timed_out, "it did not answer within 45.0 s"));
      return refused;
    }};
  });
}

/// A coordinator that notes the number of collectives in each message.
coordinator_actor counting(simulated_cluster& cluster, std::vector<int>& collectives) {
  return front_of(cluster, [&collectives](caf::event_based_actor* self, const caf::actor& host) -> caf::behavior {
    return {[self, host, &collectives](const proto::CollectiveRequests& x) {
      collectives.push_back(x.calls_size());
      return self->delegate(host, x);
    }};
  });
}

/// The same, for programs that end before step 2.
class ending_samples final : public batch_source {
public:
  explicit ending_samples(std::shared_ptr<const batch_source> of) : of_(std::move(of)) {}

  caf::error fill(uint64_t step, range samples, std::span<float> inputs, std::span<uint32_t> labels) const override {
    if (step == 2)
      return make_error(errc::io_error, "there are no samples of step 2");
    return of_->fill(step, samples, inputs, labels);
  }

private:
  std::shared_ptr<const batch_source> of_;
};

/// Data parallel; rank 0 sends a copy that no rank receives.
strategy run_careless(rank& self, const model& m) {
  auto [w, state] = co_await self.load_weights(0);
  auto x = co_await self.input(samples_of(m, self.index(), self.world_size()));
  if (self.index() == 0)
    co_await self.send(1, x);
  auto by_weight = co_await gradient_by(self, w, x);
  co_await self.update(w, state, co_await self.all_reduce(std::move(by_weight), self.world()));
  co_await self.finish(std::move(w));
}

const known_strategy careless{.name = "careless",
                              .what = "data parallel that sends one activation too many",
                              .run = run_careless,
                              .check = check_data_parallel,
                              .cut = batch_cut::never};

/// Data parallel; the ranks of the first half get their weights from those of the second half.
strategy run_copying(rank& self, const model& m) {
  const auto half = self.world_size() / 2;
  const group pair{self.index() % half, 2, half};
  auto [w, state] = co_await self.load_weights(0);
  auto x = co_await self.input(samples_of(m, self.index(), self.world_size()));
  auto by_weight = co_await gradient_by(self, w, x);
  auto sum = co_await self.all_reduce(std::move(by_weight), self.world());
  if (self.index() >= half)
    co_await self.update(w, state, std::move(sum));
  else
    w.drop();
  auto copy = co_await self.broadcast(w, pair.rank(1), pair);
  co_await self.finish(std::move(copy));
}

const known_strategy copying{.name = "copying",
                             .what = "data parallel whose first half of ranks has copies of the others' weights",
                             .run = run_copying,
                             .check = check_data_parallel,
                             .cut = batch_cut::never};

} // namespace

TEST_CASE("trainer: every strategy gives the same bits on devices as its program in one thread") {
  int trained = 0;
  for (auto& which : strategies()) {
    CAPTURE(which.name);
    constexpr uint32_t ranks = 4;
    auto job = small_job(which.name, 8, 10, 2);
    if (which.check(job.shape, ranks))
      continue;
    ++trained;
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
  CHECK(trained >= 20); // computed layers have no positions and no experts to share
}

TEST_CASE("trainer: a step whose report has no room waits, for as long as it takes, and is not repeated") {
  constexpr int steps = 4;
  simulated_cluster cluster{training_devices(2)};
  simulated_training run{cluster, small_job("ddp", 8, 10, 2), 2, steps};
  run.settings.image_every = 2;
  bool room = false;
  std::vector<std::pair<uint64_t, bool>> asked;
  run.settings.watcher.has_room = [&](uint64_t step, bool with_model) {
    asked.emplace_back(step, with_model);
    return room || step != 1;
  };
  run.start();
  run.run_steps(1);
  const auto long_behind = cluster.scheduler.clock().now() + 3 * run.settings.patience;
  cluster.run_until([&] { return cluster.scheduler.clock().now() >= long_behind; });
  CHECK(run.reports.size() == 1);
  REQUIRE(asked.size() >= 3); // it asks again now and then
  CHECK(asked[0] == std::pair{uint64_t{0}, false});
  CHECK(asked[1] == std::pair{uint64_t{1}, true});
  room = true;
  SUBCASE("it gets a message") {
    const auto before = cluster.scheduler.clock().now();
    cluster.self->send(run.handle, atom::resume_v);
    run.run_steps(2);
    CHECK(cluster.scheduler.clock().now() == before);
  }
  SUBCASE("it checks by itself") {
    run.run_steps(2);
  }
  run.finish();
  CHECK(run.problem() == "");
  CHECK(run.reports.size() == steps);
  CHECK(run.notes.empty());
  const auto alone = weights_alone(10, steps);
  for (uint32_t layer = 0; layer < 8; ++layer)
    CHECK(distance(run.weights(layer), alone[layer]) < 1e-12);
}

TEST_CASE("trainer: the others end with one rank's weights if a device dies at any message") {
  constexpr int steps = 5;
  constexpr uint64_t batch = 10;
  const auto of_all = weights_alone(batch, steps), of_columns = weights_alone(batch, steps, 8, "tensor-naive");
  const auto all = strategies();
  uint64_t runs = 0, recovered = 0, done_again = 0;
  for (uint64_t seed = 0; runs < 1000; ++seed) {
    REQUIRE(seed < 3000);
    std::mt19937_64 random{seed};
    const auto& which = all[seed % all.size()];
    const auto& alone = which.by_columns ? of_columns : of_all;
    auto job = small_job(which.name, 8, batch, 2);
    const auto ranks = static_cast<uint32_t>(2 + random() % 3);
    if (which.check(job.shape, ranks))
      continue;
    ++runs;
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

TEST_CASE("trainer: a device that dies before the first step costs the others nothing") {
  const auto alone = weights_alone(6, 1, 4);
  uint64_t before_the_first_step = 0;
  for (uint64_t messages = 0; messages < 100; ++messages) {
    CAPTURE(messages);
    simulated_cluster cluster{training_devices(4, messages + 1)};
    simulated_training run{cluster, small_job("ddp", 4, 6, 6), 3, 1};
    run.start();
    run.run_messages(messages);
    run.kill(messages % 3);
    run.finish();
    CHECK(run.problem() == "");
    before_the_first_step += run.notes_with("is lost") + run.notes_with("cannot join") - run.notes_with("is given up");
    for (uint32_t layer = 0; layer < 4 && run.problem().empty(); ++layer)
      CHECK(distance(run.weights(layer), alone[layer]) < 1e-12);
  }
  CHECK(before_the_first_step > 10);
}

TEST_CASE("trainer: a training can start right after another one, with the devices' memory free") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    simulated_cluster cluster{training_devices(2, seed)};
    simulated_training first{cluster, small_job("ddp", 4, 6, 6), 2, 1}, next{cluster, small_job("ddp", 4, 6, 6), 2, 1};
    first.start();
    cluster.run_until([&] { return first.outcome.has_value(); }); // and not a message longer
    first.handle = nullptr;
    next.run();
    CHECK(next.problem() == "");
  }
}

TEST_CASE("trainer: another device is used if a program has taken one meanwhile, if there is any") {
  for (uint32_t devices : {2u, 3u}) {
    CAPTURE(devices);
    simulated_cluster cluster{training_devices(devices)};
    simulated_training run{cluster, small_job("ddp", 4, 6, 6), 2, 2};
    gpu_sim::DeviceId taken;
    taken.set_value(run.settings.devices[1].value);
    proto::AllocateRequest some;
    some.set_bytes(1 << 12);
    CHECK(!error_in(cluster.ask_coordinator<proto::AllocateResponse>(taken, some)));
    run.run();
    CHECK(run.notes_with("cannot join: ") == 1);
    if (devices == 2)
      CHECK(contains(run.problem(), "1 of 2 devices are free: other clients took some, or they are lost"));
    else
      CHECK(run.problem() == "");
  }
}

TEST_CASE("trainer: if the ranks that are left have no room for a step, the run waits and keeps the model") {
  constexpr uint64_t steps = 3, batch = 6;
  constexpr uint32_t layers = 6;
  auto bytes_peak = [&](uint32_t ranks) {
    simulated_cluster cluster{training_devices(ranks)};
    simulated_training run{cluster, small_job("1f1b", layers, batch, 1), ranks, 1};
    run.run();
    return run.reports.at(0).bytes_peak;
  };
  const auto room = (bytes_peak(3) + 3 * bytes_peak(2)) / 4; // what is free lies in pieces
  REQUIRE(bytes_peak(3) < room);
  REQUIRE(room < bytes_peak(2));
  const auto alone = weights_alone(batch, steps, layers);
  for (uint32_t devices : {3u, 4u}) {
    CAPTURE(devices);
    simulated_cluster cluster{training_devices(devices)};
    simulated_training run{cluster, small_job("1f1b", layers, batch, 1), 3, steps};
    run.settings.memory_bytes = room;
    run.settings.mirror = true;
    run.settings.image_every = steps;
    run.start();
    run.run_steps(1);
    run.run_messages(20);
    run.kill(1);
    run.finish();
    if (devices == 3) {
      CHECK(contains(run.problem(), "cannot be run by 2 ranks: rank "));
      CHECK(contains(run.problem(), " do not fit: "));
      REQUIRE(run.images.size() == 1);
      CHECK(run.images[0].step == run.reports.size());
      continue;
    }
    REQUIRE(run.problem() == "");
    for (uint32_t layer = 0; layer < layers; ++layer)
      CHECK(distance(run.weights(layer), alone[layer]) < 1e-12);
  }
}

TEST_CASE("trainer: inputs of a communication are freed when it ends: a rank holds only what its program does") {
  for (const std::string strategy : {"ddp", "zero1", "zero2", "zero3", "fsdp", "1f1b", "tensor"}) {
    CAPTURE(strategy);
    constexpr uint32_t ranks = 2;
    const auto job = small_job(strategy, 6, 6, 3);
    computed_world world{job, ranks, 4 << 20};
    REQUIRE(world.run_step());
    simulated_cluster cluster{training_devices(ranks)};
    simulated_training run{cluster, job, ranks, 1};
    run.run();
    REQUIRE(run.problem() == "");
    CHECK(run.reports[0].bytes_peak <= world.bytes_peak());
  }
}

TEST_CASE("trainer: a run without room on the ranks that are left ends with the model, which each of them has") {
  constexpr uint64_t steps = 5, batch = 60;
  auto trained = [&](uint32_t ranks, uint64_t room) {
    simulated_cluster cluster{training_devices(ranks)};
    simulated_training run{cluster, small_job("ddp", 4, batch, batch), ranks, 2};
    run.settings.memory_bytes = room;
    run.run();
    return run.problem();
  };
  uint64_t room = 1 << 13; // enough for 3 ranks, each with a third of the batch, and not for 2
  while (!trained(3, room).empty())
    room += 1 << 8;
  REQUIRE(!trained(2, room).empty());
  simulated_cluster cluster{training_devices(3)};
  simulated_training run{cluster, small_job("ddp", 4, batch, batch), 3, steps};
  run.settings.memory_bytes = room;
  run.settings.image_every = steps;
  run.start();
  run.run_steps(2);
  run.kill(1);
  run.finish();
  CHECK(contains(run.problem(), "cannot be run by 2 ranks: "));
  REQUIRE(run.images.size() == 1);
  CHECK(run.images[0].step == run.reports.size());
  const auto alone = weights_alone(batch, static_cast<int>(run.images[0].step), 4);
  for (uint32_t layer = 0; layer < 4; ++layer)
    CHECK(distance(run.weights_in(run.images[0], layer), alone[layer]) < 1e-12);
}

TEST_CASE("trainer: a world without room is not tried again while other ranks are idle") {
  constexpr uint64_t batch = 60;
  auto job = small_job("tensor", 4, batch, batch);
  job.shape.parallel.tp = 2;
  auto started = [&](simulated_training& run, uint64_t room) {
    run.settings.memory_bytes = room;
    run.start();
    run.run_steps(2);
    return run.reports.size() == 2;
  };
  uint64_t room = 1 << 13; // enough for two pairs, each with half of the batch, and not for one
  for (bool enough = false; !enough; room += 1 << 8) {
    simulated_cluster cluster{training_devices(4)};
    simulated_training run{cluster, job, 4, 2};
    enough = started(run, room + (1 << 8));
  }
  simulated_cluster cluster{training_devices(4)};
  simulated_training run{cluster, job, 4, 5};
  run.settings.mirror = true;
  REQUIRE(started(run, room));
  run.kill(1);
  run.finish();
  CHECK(contains(run.problem(), "cannot be run by 3 ranks: "));
  for (auto* tried :
       {"on 2 ranks train, 2 tensor-parallel; 1 more", "on 3 ranks train, 1 tensor-parallel"}) // once each
    CHECK(run.notes_with(tried) == 1);
}

TEST_CASE("trainer: another strategy is tried if its own has no room on fewer ranks, and the reason is noted") {
  constexpr uint64_t steps = 3, batch = 8;
  constexpr uint32_t layers = 8;
  auto needed = [&](std::string_view strategy, uint32_t ranks) {
    simulated_cluster cluster{training_devices(ranks)};
    simulated_training run{cluster, small_job(strategy, layers, batch, 1), ranks, 1};
    run.run();
    return run.reports.at(0).bytes_needed;
  };
  auto after_a_loss = [&](std::string_view strategy, uint32_t ranks, uint64_t room) {
    auto cluster = std::make_unique<simulated_cluster>(training_devices(ranks));
    auto run = std::make_unique<simulated_training>(*cluster, small_job(strategy, layers, batch, 1), ranks, steps);
    run->settings.memory_bytes = room;
    run->settings.mirror = true;
    run->start();
    run->run_steps(1);
    run->run_messages(20);
    run->kill(1);
    run->finish();
    return std::pair{std::move(cluster), std::move(run)};
  };
  const auto room = (std::max(needed("dualpipe", 4), needed("1f1b", 3)) + needed("dualpipe", 2)) / 2 / 256 * 256;
  auto [cluster, run] = after_a_loss("dualpipe", 4, room);
  REQUIRE(run->problem() == "");
  CHECK(run->notes_with("on 2 ranks train; 1 more does nothing") == 1);
  CHECK(run->notes_with("on 3 ranks train, by 1f1b in place of dualpipe") == 1);
  CHECK(run->reports.back().ranks == 3);
  const auto alone = weights_alone(batch, steps, layers);
  for (uint32_t layer = 0; layer < layers; ++layer)
    CHECK(distance(run->weights(layer), alone[layer]) < 1e-12);

  auto [other_cluster, other] = after_a_loss("interleaved", 2, needed("interleaved", 2) / 256 * 256 + 512);
  CHECK_MESSAGE(contains(other->problem(), "cannot be run by 1 rank: rank 0, "), other->problem());
  CHECK_MESSAGE(contains(other->problem(), " do not fit: "), other->problem());
}

TEST_CASE("trainer: a run that is asked to stop takes the model from the ranks that are left") {
  for (uint64_t messages = 0; messages < 12; ++messages)
    for (size_t device : {0, 1}) {
      CAPTURE(messages);
      CAPTURE(device);
      simulated_cluster cluster{training_devices(2)};
      simulated_training run{cluster, small_job("ddp", 4, 6, 6), 2, 20};
      run.settings.image_every = 20;
      run.start();
      run.run_steps(2);
      caf::anon_send(run.handle, atom::expire_v);
      run.run_messages(messages);
      if (!run.outcome)
        run.kill(device);
      run.finish();
      CHECK(run.notes_with("could not be saved") == 0);
      CHECK(run.images.size() == 1);
    }
}

TEST_CASE("trainer: if ranks cannot continue, one or several at once, the run ends with the model before the step") {
  for (const std::string strategy : {"ddp", "1f1b"}) {
    CAPTURE(strategy);
    simulated_cluster cluster{training_devices(2)};
    auto job = small_job(strategy, 4, 6, 3);
    job.data = std::make_shared<ending_samples>(std::move(job.data));
    simulated_training run{cluster, std::move(job), 2, 5};
    run.settings.image_every = 5;
    run.run();
    CHECK(contains(run.problem(), "there are no samples of step 2"));
    CHECK(code_of(run.outcome->error()) == errc::io_error);
    CHECK(run.notes_with("could not be saved") == 0);
    REQUIRE(run.images.size() == 1);
    CHECK(run.images[0].step == 2);
    const auto alone = weights_alone(6, 2, 4);
    for (uint32_t layer = 0; layer < 4; ++layer)
      CHECK(distance(run.weights_in(run.images[0], layer), alone[layer]) < 1e-12);
  }
}

TEST_CASE("trainer: a step's report has its attempts and the largest memory of a rank") {
  simulated_cluster cluster{training_devices(4)};
  auto job = small_job("1f1b", 3, 6, 2);
  job.layers.front() = feed_forward(8, 200, nonlinearity::tanh); // the first rank's
  const auto wide = bytes_of(job.as) * job.layers.front()->elements({});
  simulated_training run{cluster, std::move(job), 3, 4};
  run.settings.mirror = true;
  run.start();
  run.run_steps(1);
  run.run_messages(20);
  REQUIRE(run.reports.size() == 1);
  run.kill(1);
  run.finish();
  REQUIRE(run.problem() == "");
  REQUIRE(run.reports.size() == 4);
  CHECK(run.reports[0].attempts == 1);
  CHECK(run.reports[1].attempts == 2);
  CHECK(run.reports[2].attempts == 1);
  CHECK(run.reports[0].bytes_peak > 4 * wide); // weights, two states, a gradient
}

TEST_CASE("trainer: the reported memory of a device is enough, and more than a rank used at once") {
  for (const std::string strategy : {"ddp", "zero1", "zero2", "zero3", "fsdp", "1f1b", "tensor"}) {
    CAPTURE(strategy);
    auto trained = [&](uint64_t memory) {
      simulated_cluster cluster{training_devices(3)};
      simulated_training run{cluster, small_job(strategy, 6, 6, 1), 3, 4};
      run.settings.memory_bytes = memory;
      run.run();
      REQUIRE(run.problem() == "");
      return run.reports.back();
    };
    const auto needed = trained(0).bytes_needed;
    for (uint64_t more : {0, 100, 256, 1000}) {
      CAPTURE(more);
      const auto again = trained(needed + more);
      CHECK(again.bytes_peak < needed);
      CHECK(again.bytes_needed <= needed + more);
    }
  }
}

TEST_CASE("trainer: a send without a receive ends the run with both ranks' names") {
  simulated_cluster cluster{training_devices(2)};
  auto job = small_job("ddp", 1, 6, 3);
  job.strategy = &careless;
  simulated_training run{cluster, std::move(job), 2, 2};
  run.run();
  CHECK_MESSAGE(contains(run.problem(), "rank 1 has ended without receiving what rank 0 sent: the input of layer 0"),
                run.problem());
}

TEST_CASE("trainer: a broadcast in a group has the root that it names") {
  simulated_cluster cluster{training_devices(4)};
  auto job = small_job("ddp", 1, 8, 8);
  job.strategy = &copying;
  simulated_training run{cluster, std::move(job), 4, 2};
  run.run();
  REQUIRE(run.problem() == "");
  CHECK(distance(run.weights(0), weights_alone(8, 2, 1).front()) < 1e-12);
}

TEST_CASE("trainer: the rank whose layer gave the first NaN is named, not the one with the loss") {
  simulated_cluster cluster{training_devices(3)};
  auto job = small_job("1f1b", 3, 6, 2);
  job.layers[1] = std::make_shared<numberless_layer>(job.layers[1], numberless_layer::where::always);
  simulated_training run{cluster, std::move(job), 3, 2};
  run.run();
  CHECK_MESSAGE(
    contains(run.problem(),
             "the loss of rank 2 in step 0 is not a finite number: the first layer with such an output is 1, "),
    run.problem());
  CHECK_MESSAGE(contains(run.problem(), ", on rank 1; "), run.problem());
}

TEST_CASE("trainer: operations that start together are called together, and a single rank calls nothing") {
  constexpr int steps = 3;
  const auto alone = weights_alone(6, steps, 8, "ddp-overlap");
  for (uint32_t ranks : {1u, 2u}) {
    CAPTURE(ranks);
    auto job = small_job("ddp-overlap", 8, 6, 6);
    job.shape.parallel.chunks = 8; // one bucket
    simulated_cluster cluster{training_devices(2)};
    simulated_training run{cluster, std::move(job), ranks, steps};
    std::vector<int> collectives;
    run.settings.coordinator = counting(cluster, collectives);
    run.run();
    REQUIRE(run.problem() == "");
    // The first one creates the communicator; those that arrive meanwhile wait.
    CHECK(collectives == (ranks == 1 ? std::vector<int>{} : std::vector<int>{8, 8, 8}));
    for (uint32_t layer = 0; layer < 8; ++layer)
      CHECK(distance(run.weights(layer), alone[layer]) < 1e-12);
  }
}

TEST_CASE("trainer: calls that go together are at most a series, and 16 MiB of a rank, or one call") {
  auto count = [](size_t calls, uint64_t bytes) {
    std::vector<group_calls::call> waiting(calls);
    for (auto& x : waiting)
      x.bytes = bytes;
    return group_calls::count_together(waiting);
  };
  CHECK(count(1, 1u << 30) == 1);
  CHECK(count(9, 4u << 20) == 4);
  CHECK(count(9, (4u << 20) + 1) == 3);
  CHECK(count(64, 8) == 64);
  CHECK(count(1200, 8) == 64);
  auto job = small_job("ddp-overlap", 70, 6, 6);
  job.shape.parallel.chunks = 70; // one bucket
  auto larger = training_devices(2);
  larger.memory_bytes = 1 << 20;
  simulated_cluster cluster{larger};
  simulated_training run{cluster, std::move(job), 2, 2};
  std::vector<int> collectives;
  run.settings.coordinator = counting(cluster, collectives);
  run.run();
  REQUIRE(run.problem() == "");
  CHECK(collectives == std::vector<int>{64, 6, 64, 6});
}

TEST_CASE("trainer: destroying a communicator is retried, and if it never succeeds the run ends") {
  for (uint32_t refusals : {1u, 2u, 1000u}) {
    CAPTURE(refusals);
    simulated_cluster cluster{training_devices(3)};
    simulated_training run{cluster, small_job("ddp", 4, 6, 6), 3, 6};
    auto front = reluctant(cluster, refusals);
    run.settings.coordinator = front;
    run.start();
    cluster.run_until([&] { return run.reports.size() == 2; });
    cluster.self->send_exit(cluster.devices[0], caf::exit_reason::kill);
    run.finish();
    CAPTURE(run.problem());
    if (refusals < 3) {
      CHECK(run.problem() == "");
      CHECK(run.reports.size() == 6);
      CHECK(std::none_of(run.notes.begin(), run.notes.end(), [](auto& x) { return contains(x, "not known"); }));
    } else {
      CHECK(contains(run.problem(), "is not known to have ended after 3 requests"));
      CHECK(contains(run.problem(), "it did not answer within 45.0 s"));
      CHECK(run.reports.size() < 6);
    }
    cluster.stop(front);
  }
}
