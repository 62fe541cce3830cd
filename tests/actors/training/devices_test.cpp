// Ranks whose devices are lost, all at once, and ranks that each process starts by itself.
#include "actors/training/training_rank.hpp"
#include "messages/wire_ids.hpp"
#include "tests/support/training/simulated_training.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

constexpr uint32_t ranks = 2;
constexpr uint64_t steps = 4, batch = 6;
constexpr uint32_t layers = 4;

/// A run whose ranks are started by others than the trainer, on two of four devices.
struct run_of_processes {
  explicit run_of_processes(uint64_t seed)
    : cluster{training_devices(2 * ranks, seed)}, run{cluster, small_job("ddp", layers, batch, batch), ranks, steps} {
    const auto info = cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{});
    for (auto& each : info.devices())
      ids.push_back(id_of(each.metadata()));
    run.settings.starts_ranks = false;
    run.settings.mirror = true;
    run.start();
    for (uint32_t i = 0; i < ranks; ++i)
      start_rank(i);
  }

  void start_rank(uint32_t device) {
    rank_settings its;
    its.job = run.job;
    its.coordinator = cluster.host;
    its.trainer = run.handle;
    its.device = ids[device];
    started.push_back(cluster.sys.spawn(training_rank, its));
  }

  simulated_cluster cluster;
  simulated_training run;
  std::vector<device_id> ids;
  std::vector<rank_actor> started;
};

} // namespace

TEST_CASE("where all ranks have lost their devices, those that come in their place begin the step again") {
  const auto alone = weights_alone(batch, steps, layers);
  uint64_t waited = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    run_of_processes x{seed};
    x.run.run_steps(1);
    x.run.run_messages(seed * 5);
    if (x.run.outcome)
      continue;
    for (uint32_t i = 0; i < ranks; ++i)
      x.run.kill(i);
    x.cluster.run_until([&] { return x.run.notes_with("are awaited") > 0 || x.run.outcome; });
    for (uint32_t i = 0; i < ranks; ++i)
      x.start_rank(ranks + i);
    x.run.finish();
    REQUIRE(x.run.problem() == "");
    waited += x.run.notes_with("cannot be run by 0 ranks");
    for (uint32_t layer = 0; layer < layers; ++layer)
      CHECK(distance(x.run.weights(layer), alone[layer]) < 1e-12);
  }
  CHECK(waited > 20);
}

TEST_CASE("where no process is left nobody is waited for, and devices that do not come are not for long") {
  for (auto reason : {caf::exit_reason::remote_link_unreachable, caf::exit_reason::kill}) {
    const bool may_return = reason == caf::exit_reason::kill;
    CAPTURE(may_return);
    run_of_processes x{7};
    x.run.run_steps(1);
    const auto before = x.cluster.scheduler.clock().now();
    for (auto& each : x.started)
      x.cluster.self->send_exit(each, reason);
    x.run.finish();
    CHECK(x.run.problem().find("cannot be run by 0 ranks: no rank is left") != std::string::npos);
    const auto waited = x.cluster.scheduler.clock().now() - before;
    CHECK((waited > x.run.settings.patience) == may_return);
    CHECK(waited < x.run.settings.patience + std::chrono::seconds{5});
  }
}
