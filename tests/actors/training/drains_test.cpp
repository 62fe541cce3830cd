// A node with a rank of a training is drained: the rank hands over what it has, and the node ends while the run goes
// on.
#include "tests/support/actor_state.hpp"
#include "tests/support/simulated_client.hpp"
#include "tests/support/training/simulated_training.hpp"

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

/// So many devices, and the node "leaver" with the last one.
struct cluster_with_leaver {
  simulated_cluster cluster;
  simulated_client host{cluster};

  cluster_with_leaver(uint32_t devices, uint64_t seed) : cluster(training_devices(devices - 1, seed)) {
    state_of<coordinator_state>(cluster.host).options.own_nodes_may_end = true;
    node_options settings;
    settings.name = "leaver";
    settings.devices = 1;
    settings.device = cluster.device_settings;
    settings.coordinator = cluster.host;
    cluster.host_node = cluster.sys.spawn(node, settings);
    proto::ClusterInfoRequest all;
    all.set_min_devices(devices);
    all.set_timeout_ns(1'000'000'000);
    REQUIRE(cluster.ask_coordinator<proto::ClusterInfo>(all).devices_size() == static_cast<int>(devices));
  }
  device_id last_device() {
    const auto info = cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{});
    uint64_t last = 0;
    for (auto& each : info.devices())
      last = std::max(last, each.metadata().deviceid().value());
    return {last};
  }
  answer_ptr<proto::DrainResponse> drain() {
    proto::DrainRequest x;
    x.set_node("leaver");
    x.set_timeout_ns(30'000'000'000);
    return host.ask<proto::DrainResponse>(cluster.host, x);
  }
};

} // namespace

TEST_CASE("a training's rank leaves a node that is drained, no step is done again, and the node ends meanwhile") {
  constexpr uint64_t batch_size = 6, steps_wanted = 5;
  constexpr uint32_t depth = 4;
  for (const std::string strategy : {"ddp", "zero1", "zero3", "1f1b"})
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      CAPTURE(strategy);
      CAPTURE(seed);
      const bool has_spare = seed % 2 == 0;
      cluster_with_leaver on{has_spare ? 4u : 3u, seed};
      simulated_training run{on.cluster, small_job(strategy, depth, batch_size, 2), 3, steps_wanted};
      if (std::ranges::count(run.settings.devices, on.last_device()) == 0)
        run.settings.devices[1] = on.last_device();
      bool told = false; // else all steps would be done before the trainer looks
      run.settings.watcher.has_room = [&](uint64_t step, bool) { return step < 1 || told; };
      run.settings.watcher.note = [&](const std::string& x) {
        run.notes.push_back(x);
        told = told || x.find("is to leave, behind step 1: node leaver is drained") != x.npos;
      };
      run.start();
      run.run_steps(1);
      auto drained = on.drain();
      run.finish();
      CHECK(on.host.wait_for(drained).error() == "");
      REQUIRE(run.problem() == "");
      REQUIRE(run.reports.size() == steps_wanted);
      CHECK(run.notes_with("has left; what it had, others have") == 1);
      CHECK(run.notes_with("back to ") == 0);
      CHECK(run.reports.back().ranks == (has_spare ? 3 : 2));
      for (auto& each : run.reports)
        CHECK(each.attempts == 1);
      const auto alone = weights_alone(batch_size, steps_wanted, depth);
      for (uint32_t layer = 0; layer < depth; ++layer)
        CHECK(distance(run.weights(layer), alone[layer]) < 1e-12);
    }
}
