// Devices that die, hang or are slow while training does something other than a step, in virtual time.
#include "tests/support/training/coordinator_front.hpp"
#include "tests/support/training/layer_like.hpp"
#include "tests/support/training/simulated_training.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

constexpr uint32_t moments_layers = 3;
constexpr uint64_t moments_batch = 6;

training_job moments_job(std::string_view strategy) {
  return small_job(strategy, moments_layers, moments_batch, 2);
}

/// A run in which something can happen at any message. Until then the messages are the same each time.
struct momentary_run {
  momentary_run(std::string_view strategy, uint32_t ranks, uint32_t devices, uint64_t steps, uint64_t seed = 1)
    : momentary_run(strategy, ranks, steps, training_devices(devices, seed)) {}
  momentary_run(std::string_view strategy, uint32_t ranks, uint64_t steps, const simulation_options& options)
    : cluster(options), run(cluster, moments_job(strategy), ranks, steps) {
    run.settings.mirror = true;
  }

  /// The number of messages until `done`.
  uint64_t count_until(const std::function<bool()>& done) {
    uint64_t result = 0;
    cluster.run_until([&] { return done() || (++result, false); });
    return result;
  }

  simulated_cluster cluster;
  simulated_training run;
};

/// Checks that the model at each step is that of a run on one rank.
void check_models(const momentary_run& x, const std::vector<std::vector<std::vector<double>>>& alone) {
  REQUIRE(x.run.problem() == "");
  for (uint32_t layer = 0; layer < moments_layers; ++layer) {
    CHECK(distance(x.run.weights(layer), alone.back()[layer]) < 1e-12);
    for (auto& image : x.run.images)
      CHECK(distance(x.run.weights_in(image, layer), alone[image.step][layer]) < 1e-12);
  }
}

std::vector<std::vector<std::vector<double>>> models_alone(int steps) {
  std::vector<std::vector<std::vector<double>>> result{{}};
  for (int i = 1; i <= steps; ++i)
    result.push_back(weights_alone(moments_batch, i, moments_layers));
  return result;
}

/// One of two ranks is lost after the first step; the third device takes its place.
void one_is_lost(momentary_run& x) {
  x.run.start();
  x.run.run_steps(1);
  x.run.kill(1);
}

/// The number of messages until the device that joins takes part.
uint64_t moments_of_a_join(std::string_view strategy, uint64_t steps, const std::function<void(momentary_run&)>& begun,
                           const std::vector<std::vector<std::vector<double>>>& alone) {
  momentary_run undisturbed{strategy, 2, 3, steps};
  begun(undisturbed);
  const auto result = undisturbed.count_until([&] {
    return undisturbed.run.notes_with("has joined") > 0 && undisturbed.run.reports.back().ranks == 2;
  });
  undisturbed.run.finish();
  check_models(undisturbed, alone);
  return result;
}

/// A layer whose passes take this much virtual time.
class long_layer final : public layer_like {
public:
  long_layer(std::shared_ptr<const layer> what, caf::detail::test_actor_clock& clock, caf::timespan takes)
    : layer_like(std::move(what)), clock_(clock), takes_(takes) {}

  void forward(const pass& at, const std::byte* x, const std::byte* w, std::byte* y) const override {
    layer_like::forward(at, x, w, y);
    clock_.advance_time(takes_);
  }
  void backward(const pass& at, const std::byte* x, const std::byte* w, const std::byte* by_output,
                std::byte* by_weight, std::byte* by_input) const override {
    layer_like::backward(at, x, w, by_output, by_weight, by_input);
    clock_.advance_time(takes_);
  }

private:
  caf::detail::test_actor_clock& clock_;
  caf::timespan takes_;
};

} // namespace

TEST_CASE("moments: a checkpoint is right or absent if a device dies at any moment of it") {
  constexpr uint64_t steps = 3;
  const auto alone = models_alone(steps);
  for (const std::string strategy : {"ddp", "zero3", "1f1b"}) {
    CAPTURE(strategy);
    auto begun = [&](momentary_run& x) {
      x.run.settings.image_every = 1;
      x.run.start();
      x.run.run_steps(1);
    };
    uint64_t moments = 0;
    {
      momentary_run undisturbed{strategy, 3, 4, steps};
      begun(undisturbed);
      moments = undisturbed.count_until([&] { return !undisturbed.run.images.empty(); });
      undisturbed.run.finish();
      check_models(undisturbed, alone);
    }
    REQUIRE(moments > 3);
    uint64_t missed = 0;
    for (uint64_t at = 0; at < moments; ++at) {
      CAPTURE(at);
      momentary_run x{strategy, 3, 4, steps};
      begun(x);
      x.run.run_messages(at);
      REQUIRE(x.run.images.empty());
      x.run.kill(at % 3);
      x.run.finish();
      check_models(x, alone);
      REQUIRE(!x.run.images.empty());
      CHECK(x.run.images.back().step == steps);
      missed += x.run.images.front().step == 1 ? 0 : 1;
    }
    CHECK(missed == 0); // it is taken all the same when the step is repeated
  }
}

TEST_CASE("moments: the others continue if a device dies at any moment of a join") {
  constexpr uint64_t steps = 5;
  const auto alone = models_alone(steps);
  for (const std::string strategy : {"ddp", "zero3"}) {
    CAPTURE(strategy);
    const auto begun = one_is_lost;
    const auto moments = moments_of_a_join(strategy, steps, begun, alone);
    uint64_t alone_at_last = 0;
    for (uint64_t at = 0; at < moments; ++at) {
      CAPTURE(at);
      momentary_run x{strategy, 2, 3, steps};
      begun(x);
      x.run.run_messages(at);
      x.run.kill(at % 2 == 0 ? 2 : 0); // the one that joins, or the other one
      x.run.finish();
      check_models(x, alone);
      alone_at_last += x.run.reports.back().ranks == 1 ? 1 : 0;
    }
    CHECK(alone_at_last > moments / 2);
  }
}

TEST_CASE("moments: the model is right if a device hangs or is slow at any moment of a checkpoint or join") {
  constexpr uint64_t steps = 5;
  const auto alone = models_alone(steps);
  uint64_t hung = 0;
  for (const std::string strategy : {"ddp", "zero3"}) {
    CAPTURE(strategy);
    auto begun = [](momentary_run& x) {
      x.run.settings.image_every = 1;
      one_is_lost(x);
    };
    const auto moments = moments_of_a_join(strategy, steps, begun, alone);
    const auto hang = fault(proto::FaultRequest::HANG);
    const auto slow = fault(proto::FaultRequest::SLOW, std::nullopt, std::chrono::milliseconds{30});
    for (uint64_t at = 0; at < moments; at += 2)
      for (auto& what : {hang, slow}) {
        CAPTURE(at);
        CAPTURE(what.kind());
        momentary_run x{strategy, 2, 3, steps};
        begun(x);
        x.run.run_messages(at);
        const auto& first = x.run.settings.devices; // of 1, 2 and 3
        x.cluster.inject(at % 4 == 0 ? first[0].value : 6 - first[0].value - first[1].value, what);
        x.run.finish();
        check_models(x, alone);
        hung += x.run.notes_with("suspicion") > 0 ? 1 : 0;
      }
  }
  CHECK(hung > 10);
}

TEST_CASE("moments: a device that hangs is given up, and its step repeated") {
  constexpr uint64_t steps = 4;
  const auto alone = models_alone(steps);
  uint64_t given_up = 0, joined = 0;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    CAPTURE(seed);
    constexpr const char* all[] = {"ddp", "zero3", "1f1b"};
    momentary_run x{all[seed % 3], 3, 4, steps, seed};
    x.run.start();
    x.run.run_steps(1);
    x.run.run_messages(seed * 7);
    if (x.run.outcome)
      continue;
    x.cluster.inject(x.run.settings.devices[seed % 3].value, fault(proto::FaultRequest::HANG));
    x.run.finish();
    check_models(x, alone);
    given_up += x.run.notes_with("is given up") > 0 ? 1 : 0;
    joined += x.run.notes_with("has joined") > 0 ? 1 : 0;
  }
  CHECK(given_up > 12);
  CHECK(joined > 0);
}

TEST_CASE("moments: ranks that compute for long report between two layers") {
  simulated_cluster cluster{training_devices(2)};
  auto job = moments_job("ddp");
  for (auto& each : job.layers)
    each = std::make_shared<long_layer>(each, cluster.scheduler.clock(), std::chrono::seconds{2});
  simulated_training run{cluster, std::move(job), 2, 2};
  run.settings.patience = std::chrono::seconds{10}; // a step takes a rank 24 s, between two communications
  run.run();
  CHECK(run.problem() == "");
  CHECK(run.notes.empty());
}

TEST_CASE("moments: a rank's arrivals are news of it, however long a step takes") {
  simulated_cluster cluster{training_devices(2)};
  auto job = moments_job("zero3");
  for (auto& each : job.layers) // too short for a rank to report in between
    each = std::make_shared<long_layer>(each, cluster.scheduler.clock(), std::chrono::milliseconds{400});
  simulated_training run{cluster, std::move(job), 2, 2};
  run.settings.patience = std::chrono::seconds{3};
  const auto began = cluster.scheduler.clock().now();
  run.run();
  CHECK(cluster.scheduler.clock().now() - began > 2 * run.settings.patience);
  CHECK(run.problem() == "");
  CHECK(run.notes.empty());
}

TEST_CASE("moments: a process that was paused for longer than the patience takes no rank for late") {
  for (uint64_t messages = 0; messages < 40; ++messages) {
    CAPTURE(messages);
    simulated_cluster cluster{journaled_devices(2)};
    simulated_training run{cluster, moments_job("ddp"), 2, 3};
    run.settings.record = numbered_record;
    run.start();
    run.run_steps(1);
    run.run_messages(messages);
    cluster.scheduler.advance_time(std::chrono::seconds{66}); // timeouts arrive before the awaited messages
    run.finish();
    CHECK(run.problem() == "");
    CHECK(run.notes_with("nothing has happened") == 0);
    CHECK(run.notes_with("did not say") == 0);
  }
}

TEST_CASE("moments: a device that is slow costs only time") {
  constexpr uint64_t steps = 3;
  for (const std::string strategy : {"ddp", "zero3", "1f1b"}) {
    CAPTURE(strategy);
    momentary_run quick{strategy, 3, 3, steps};
    quick.run.run();
    REQUIRE(quick.run.problem() == "");
    momentary_run slow{strategy, 3, 3, steps};
    slow.run.start();
    slow.cluster.inject(slow.run.settings.devices[1].value,
                        fault(proto::FaultRequest::SLOW, std::nullopt, std::chrono::milliseconds{30}));
    const auto began = slow.cluster.sys.clock().now();
    slow.run.finish();
    REQUIRE(slow.run.problem() == "");
    CHECK(slow.cluster.sys.clock().now() - began > std::chrono::milliseconds{90});
    CHECK(slow.run.notes.empty());
    for (uint32_t layer = 0; layer < moments_layers; ++layer)
      CHECK(slow.run.weights(layer) == quick.run.weights(layer));
  }
}

TEST_CASE("moments: the journal lacks one committed step at most, and has no step twice") {
  simulated_cluster cluster{journaled_devices(4)};
  simulated_training run{cluster, moments_job("ddp"), 3, 8};
  run.settings.record = numbered_record;
  auto steps_there = [&] { // if the process exited now
    std::vector<uint64_t> result;
    const auto records = cluster.log->read();
    REQUIRE(records);
    for (auto& record : *records)
      if (record.has_training_step())
        result.push_back(record.training_step().step());
    return result;
  };
  run.start();
  uint64_t lacks = 0, messages = 0;
  cluster.run_until([&] {
    const auto found = steps_there();
    for (uint64_t i = 0; i < found.size(); ++i)
      CHECK(found[i] == i);
    REQUIRE(found.size() <= run.reports.size());
    REQUIRE(found.size() + 1 >= run.reports.size());
    lacks += found.size() < run.reports.size() ? 1 : 0;
    if (++messages == 400)
      run.kill(1);
    return run.outcome.has_value();
  });
  CHECK(run.problem() == "");
  CHECK(run.notes_with("is lost") == 1);
  CHECK(lacks > 0);
  run.finish();
  CHECK(steps_there().size() == 8);
}

TEST_CASE("moments: a journal that fails is noted once, and training continues") {
  simulated_cluster cluster{journaled_devices(2)};
  simulated_training run{cluster, moments_job("ddp"), 2, 6};
  run.settings.record = numbered_record;
  run.start();
  run.run_steps(2);
  cluster.self->send_exit(cluster.journal_handle, caf::exit_reason::kill);
  run.finish();
  CHECK(run.problem() == "");
  CHECK(run.reports.size() == 6);
  CHECK(run.notes_with("the journal may lack step ") == 1);
  CHECK(run.notes_with("the journal lacks steps ") == 1);
  CHECK(run.notes.back().find(" to 5 so far: ") != std::string::npos); // from the step at which it failed
}

TEST_CASE("moments: a journal that answers late is noted, training continues, and late answers do not count") {
  simulated_cluster cluster{journaled_devices(2)};
  simulated_training run{cluster, moments_job("ddp"), 2, 4};
  run.settings.record = numbered_record;
  auto front = delaying<proto::JournalFlushRequest, proto::JournalFlushResponse>(cluster, 2, std::chrono::seconds{40});
  run.settings.coordinator = front;
  const auto began = cluster.sys.clock().now();
  run.start();
  run.run_steps(3); // the first is not awaited, the second and third for 30 s each, though answers come after 40 s
  CHECK(cluster.sys.clock().now() - began >= std::chrono::seconds{60});
  run.finish();
  CHECK(run.problem() == "");
  CHECK(run.reports.size() == 4);
  CHECK(run.notes
        == std::vector<std::string>{"the journal may lack step 0, and training goes on: the coordinator did not say "
                                    "within 30 s whether the journal has it",
                                    "the journal has the steps again"});
  cluster.stop(front);
}

TEST_CASE("moments: the step is repeated if the coordinator does not say how operations ended") {
  const auto alone = models_alone(2);
  for (const std::string strategy : {"ddp", "1f1b"}) { // in a pipeline, ranks wait for ranks that wait for it
    CAPTURE(strategy);
    simulated_cluster cluster{training_devices(3)};
    simulated_training run{cluster, moments_job(strategy), 3, 2};
    auto front = delaying<proto::CommWaitRequest, gpu_sim::GetCommStatusResponse>(cluster, 1);
    run.settings.coordinator = front;
    run.run();
    REQUIRE(run.problem() == "");
    REQUIRE(run.notes.size() == 4);
    for (auto* silence : {"5 s", "15 s", "35 s"}) // with the ranks that it waits for
      CHECK(run.notes_with(fmt::format("step 0 has been stalled for {}: ", silence)) == 1);
    CHECK(run.notes.back()
          == "step 0 is given up: the coordinator did not say within 60 s how 1 operation of communicator 1 ended");
    for (uint32_t layer = 0; layer < moments_layers; ++layer)
      CHECK(distance(run.weights(layer), alone.back()[layer]) < 1e-12);
    cluster.stop(front);
  }
}

TEST_CASE("moments: a run that is asked to stop at any moment reports the model as of its step") {
  constexpr uint64_t steps = 5;
  const auto alone = models_alone(steps);
  for (const std::string strategy : {"ddp", "zero3", "1f1b"}) {
    CAPTURE(strategy);
    auto begun = [&](momentary_run& x) {
      x.run.settings.image_every = 100;
      x.run.start();
      x.run.run_steps(2);
    };
    momentary_run undisturbed{strategy, 3, 4, steps};
    begun(undisturbed);
    const auto moments = undisturbed.count_until([&] { return undisturbed.run.reports.size() == 4; });
    undisturbed.run.finish();
    REQUIRE(moments > 3);
    for (uint64_t at = 0; at < moments; at += 3)
      for (bool dies : {false, true}) {
        CAPTURE(at);
        CAPTURE(dies);
        momentary_run x{strategy, 3, 4, steps};
        begun(x);
        x.run.run_messages(at);
        x.cluster.self->send(x.run.handle, atom::expire_v);
        if (dies) {
          x.run.run_messages(at % 7);
          x.run.kill(at % 3);
        }
        x.run.finish();
        CHECK(x.run.problem().find("the run was asked to stop") != std::string::npos);
        CHECK(x.run.images.size() + x.run.notes_with("the model as of step ") == 1);
        if (!dies)
          REQUIRE(x.run.images.size() == 1);
        for (auto& image : x.run.images) {
          CHECK(image.step == x.run.reports.size());
          for (uint32_t layer = 0; layer < moments_layers; ++layer)
            CHECK(distance(x.run.weights_in(image, layer), alone[image.step][layer]) < 1e-12);
        }
      }
  }
}

TEST_CASE("moments: a run that is asked to stop at any moment of a rank's leaving keeps its model") {
  constexpr uint64_t steps = 6;
  const auto alone = models_alone(steps);
  for (uint64_t at = 0; at < 80; ++at) {
    CAPTURE(at);
    momentary_run x{"zero3", 3, 3, steps};
    x.run.settings.image_every = 100;
    x.run.settings.mirror = false;
    x.run.start();
    x.run.run_steps(2);
    x.cluster.self->send(x.run.handle, rank_leaving{x.run.settings.devices[1]});
    x.cluster.run_until([&] { return x.run.notes_with(" leaves after step ") > 0; });
    x.run.run_messages(at);
    x.cluster.self->send(x.run.handle, atom::expire_v);
    x.run.finish();
    CHECK(x.run.problem().find("the run was asked to stop") != std::string::npos);
    REQUIRE(x.run.images.size() == 1);
    CHECK(x.run.images[0].step == x.run.reports.size());
    for (uint32_t layer = 0; layer < moments_layers; ++layer)
      CHECK(distance(x.run.weights_in(x.run.images[0], layer), alone[x.run.images[0].step][layer]) < 1e-12);
  }
}
