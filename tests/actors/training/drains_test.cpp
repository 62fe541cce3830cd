// A node with a rank of a training is drained: the rank hands over its parts, and the node exits while the run
// continues.
#include "tests/support/nodes/leaving_node.hpp"
#include "tests/support/text_search.hpp"
#include "tests/support/training/simulated_training.hpp"

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

device_id last_device(simulated_cluster& of) {
  const auto info = of.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{});
  uint64_t last = 0;
  for (auto& each : info.devices())
    last = std::max(last, each.metadata().deviceid().value());
  return {last};
}

/// No second step is committed before the trainer has asked for drains.
void wait_for_leaving(simulated_training& run) {
  auto told = std::make_shared<bool>(false);
  run.settings.watcher.has_room = [told](uint64_t step, bool) { return step < 1 || *told; };
  run.settings.watcher.note = [told, &run](const std::string& x) {
    run.notes.push_back(x);
    *told = *told || x.find("leaves after step 1: node leaver is drained") != x.npos;
  };
}

/// The node has exited, a rank has handed over its parts, and the run has continued without a repeated step.
void check_left(simulated_training& run, simulated_client& host, const answer_ptr<proto::DrainResponse>& drained,
                uint64_t batch_size, uint64_t steps_wanted) {
  CHECK(host.wait_for(drained).error() == "");
  REQUIRE(run.problem() == "");
  REQUIRE(run.reports.size() == steps_wanted);
  CHECK(run.notes_with("has left; its parts of the model are taken over") == 1);
  CHECK(run.notes_with("back to ") == 0);
  for (auto& each : run.reports)
    CHECK(each.attempts == 1);
  const auto depth = static_cast<uint32_t>(run.job->layers.size());
  const auto alone = weights_alone(batch_size, static_cast<int>(steps_wanted), depth);
  for (uint32_t layer = 0; layer < depth; ++layer)
    CHECK(distance(run.weights(layer), alone[layer]) < 1e-12);
}

} // namespace

TEST_CASE("drains: a rank leaves a node that is drained, no step is repeated, and the node exits meanwhile") {
  constexpr uint64_t batch_size = 6, steps_wanted = 5;
  constexpr uint32_t depth = 4;
  for (const std::string strategy : {"ddp", "zero1", "zero3", "1f1b"})
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      CAPTURE(strategy);
      CAPTURE(seed);
      const bool has_spare = seed % 2 == 0;
      const uint32_t devices = has_spare ? 4 : 3;
      simulated_cluster cluster{training_devices(devices - 1, seed)};
      simulated_client host{cluster};
      add_leaver(cluster, devices);
      simulated_training run{cluster, small_job(strategy, depth, batch_size, 2), 3, steps_wanted};
      if (const auto leaver = last_device(cluster); std::ranges::count(run.settings.devices, leaver) == 0)
        run.settings.devices[1] = leaver;
      wait_for_leaving(run);
      run.start();
      run.run_steps(1);
      auto drained = drain(cluster, host);
      run.finish();
      check_left(run, host, drained, batch_size, steps_wanted);
      CHECK(run.reports.back().ranks == (has_spare ? 3 : 2));
    }
}

TEST_CASE("drains: the only rank moves from a node that is drained to another one, and no step is repeated") {
  constexpr uint64_t batch_size = 6, steps_wanted = 5;
  constexpr uint32_t depth = 3;
  simulated_cluster cluster{training_devices(1, 5)};
  simulated_client host{cluster};
  add_leaver(cluster, 2);
  simulated_training run{cluster, small_job("ddp", depth, batch_size, 2), 1, steps_wanted};
  run.settings.devices = {last_device(cluster)};
  wait_for_leaving(run);
  run.start();
  run.run_steps(1);
  auto drained = drain(cluster, host);
  run.finish();
  check_left(run, host, drained, batch_size, steps_wanted);
}

TEST_CASE("drains: a rank stays if the drain is cancelled before the step has ended") {
  simulated_cluster cluster{training_devices(2, 3)};
  simulated_client host{cluster};
  add_leaver(cluster, 3);
  simulated_training run{cluster, small_job("zero1", 3, 6, 2), 3, 4};
  bool has_room = false;
  run.settings.watcher.has_room = [&](uint64_t step, bool) { return step < 1 || has_room; };
  run.start();
  run.run_steps(1);
  auto drained = drain(cluster, host, "leaver", std::chrono::seconds{3});
  CHECK(contains(host.wait_for(drained).error(), "node leaver was not drained within 3 s"));
  CHECK(run.notes_with("leaves after step 1: node leaver is drained") == 1);
  const auto end = cluster.scheduler.clock().now() + std::chrono::seconds{3};
  cluster.run_until([&] { return cluster.scheduler.clock().now() >= end; });
  has_room = true;
  run.finish();
  REQUIRE(run.problem() == "");
  CHECK(run.notes_with("has left") == 0);
  CHECK(run.reports.back().ranks == 3);
}
