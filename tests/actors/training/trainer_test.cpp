// Training on devices, in virtual time.
#include "actors/calls/answers.hpp"
#include "actors/training/trainer.hpp"
#include "runtime/training/computed/computed_world.hpp"
#include "tests/support/simulated_cluster.hpp"
#include "tests/support/text_search.hpp"
#include "tests/support/training/training_jobs.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

/// A run on devices of a simulated cluster.
struct simulated_training {
  simulated_training(simulated_cluster& on, training_job what, uint32_t ranks, uint64_t steps)
    : cluster(on), job(std::make_shared<training_job>(std::move(what))) {
    settings.job = job;
    settings.coordinator = cluster.host;
    settings.steps = steps;
    settings.deterministic = true;
    settings.detached = false;
    auto info = cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{});
    for (uint32_t i = 0; i < ranks; ++i)
      settings.devices.push_back(device_id{info.devices(static_cast<int>(i)).metadata().deviceid().value()});
    settings.watcher.step_done = [this](const step_report& x) { reports.push_back(x); };
    settings.watcher.note = [this](const std::string& x) { notes.push_back(x); };
    settings.watcher.ended = [this](const caf::expected<model_image>& x) { outcome = x; };
  }

  ~simulated_training() {
    if (handle) // a test that has failed
      cluster.self->send_exit(handle, caf::exit_reason::kill);
    handle = nullptr;
    for (int i = 0; i < 10000 && cluster.step(); ++i)
      ;
  }

  void start() { handle = cluster.sys.spawn(trainer, settings); }
  void run() {
    start();
    finish();
  }
  void finish() {
    cluster.run_until([&] { return outcome.has_value(); });
    handle = nullptr;
    cluster.run_until([&] { return cluster.scheduler.jobs.empty(); });
  }
  std::string problem() const { return *outcome ? "" : render(outcome->error()); }
  /// A layer's weights, as one whole.
  std::vector<double> weights(uint32_t layer) const {
    const auto whole = whole_part(value_kind::weight, layer);
    std::vector<double> result(job->layers[layer]->elements({}));
    for (auto& [what, data] : (*outcome)->parts)
      if (what.kind == whole.kind && what.layer == layer)
        copy_common(*job, what, data.bytes(), whole, std::as_writable_bytes(std::span{result}));
    return result;
  }

  simulated_cluster& cluster;
  std::shared_ptr<training_job> job;
  trainer_settings settings;
  trainer_actor handle;
  std::vector<step_report> reports;
  std::vector<std::string> notes;
  std::optional<caf::expected<model_image>> outcome;
};

simulation_options training_devices(uint32_t count, uint64_t seed = 1) {
  auto result = with_devices(count, seed);
  result.memory_bytes = 1 << 18;
  result.slice_bytes = 1 << 12;
  return result;
}

std::vector<double> weights_of(const computed_world& world, const training_job& job, uint32_t layer) {
  std::vector<double> result;
  for (uint32_t p = 0; p < job.layers[layer]->parameters().size(); ++p) {
    auto more = world.parameter_of(layer, p);
    result.insert(result.end(), more.begin(), more.end());
  }
  return result;
}

/// The weights of so many steps on one rank.
std::vector<std::vector<double>> weights_alone(uint64_t batch, int steps) {
  auto job = small_job("ddp", 8, batch, batch);
  computed_world world{job, 1, 4 << 20};
  for (int i = 0; i < steps; ++i)
    REQUIRE(world.run_step());
  std::vector<std::vector<double>> result;
  for (uint32_t layer = 0; layer < 8; ++layer)
    result.push_back(weights_of(world, job, layer));
  return result;
}

/// A coordinator in front of the cluster's, which refuses to destroy communicators so often.
coordinator_actor reluctant(simulated_cluster& cluster, uint32_t refusals) {
  auto behave = [](caf::event_based_actor* self, const caf::actor& host, uint32_t left) -> caf::behavior {
    self->set_default_handler([host](caf::scheduled_actor* me, caf::message_view& x) -> caf::result<caf::message> {
      return me->delegate(host, x.move_content_to_message());
    });
    auto count = std::make_shared<uint32_t>(left);
    return {[self, host, count](const proto::CommDestroyRequest& x) -> caf::result<proto::CommDestroyResponse> {
      if (*count == 0) {
        self->delegate(host, x);
        return caf::delegated<proto::CommDestroyResponse>{};
      }
      --*count;
      proto::CommDestroyResponse refused;
      set_error_in(refused, make_error(errc::timed_out, "it did not answer within 45.0 s"));
      return refused;
    }};
  };
  return caf::actor_cast<coordinator_actor>(cluster.sys.spawn(behave, caf::actor_cast<caf::actor>(cluster.host),
                                                              refusals));
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = a.size() == b.size() ? 0 : 1e9;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

} // namespace

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
    auto messages = random() % 3000;
    cluster.run_until([&] { return messages-- == 0 || run.outcome; });
    const auto first = random() % ranks;
    cluster.self->send_exit(cluster.devices[first], caf::exit_reason::kill);
    if (seed % 3 == 0 && ranks > 2) { // and another one, maybe while the others give up
      messages = random() % 400;
      cluster.run_until([&] { return messages-- == 0 || run.outcome; });
      cluster.self->send_exit(cluster.devices[(first + 1) % ranks], caf::exit_reason::kill);
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

TEST_CASE("with virtual ranks the bits are the same, whoever dies and whoever comes") {
  auto job = [] {
    auto result = small_job("ddp-ordered", 4, 12, 1);
    result.shape.virtual_ranks = 4;
    return result;
  };
  std::vector<std::vector<double>> expected;
  {
    auto alone_job = job();
    computed_world alone{alone_job, 1, 4 << 20};
    for (int i = 0; i < 8; ++i)
      REQUIRE(alone.run_step());
    for (uint32_t layer = 0; layer < 4; ++layer)
      expected.push_back(weights_of(alone, alone_job, layer));
  }
  uint64_t joined = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random{seed};
    simulated_cluster cluster{training_devices(5, seed + 1)}; // one to spare
    simulated_training run{cluster, job(), 4, 8};
    run.start();
    auto messages = random() % 1500;
    cluster.run_until([&] { return messages-- == 0 || run.outcome; });
    cluster.self->send_exit(cluster.devices[random() % 4], caf::exit_reason::kill);
    run.finish();
    REQUIRE(run.problem() == "");
    for (auto& each : run.notes)
      joined += each.find("has joined") != std::string::npos ? 1 : 0;
    for (uint32_t layer = 0; layer < 4; ++layer)
      CHECK(run.weights(layer) == expected[layer]);
  }
  CHECK(joined > 0);
}

TEST_CASE("a communicator that is not destroyed at once is asked again, and where it never is the run ends with that") {
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
      CHECK(contains(run.problem(), "is not known to have ended, though it was asked 3 times"));
      CHECK(contains(run.problem(), "it did not answer within 45.0 s"));
      CHECK(run.reports.size() < 6);
    }
    cluster.stop(front);
  }
}
