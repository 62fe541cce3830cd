// How a device that joins gets the model.
#include "tests/support/training/coordinator_front.hpp"
#include "tests/support/training/simulated_training.hpp"

#include <numeric>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

constexpr uint32_t join_layers = 4;
constexpr uint64_t join_batch = 12, join_steps = 6;

/// A coordinator that notes the number of ranks of each broadcast.
coordinator_actor noting_broadcasts(simulated_cluster& cluster, std::vector<int>& ranks) {
  return front_of(cluster, [&ranks](caf::event_based_actor* self, const caf::actor& host) -> caf::behavior {
    return {[self, host, &ranks](const proto::CollectiveRequests& x) {
      for (auto& each : x.calls())
        if (each.collective().kind() == proto::BROADCAST)
          ranks.push_back(each.inputs_size());
      return self->delegate(host, x);
    }};
  });
}

struct joined_run {
  joined_run(std::string_view strategy, std::vector<uint32_t> lost, uint64_t seed)
    : cluster{training_devices(6, seed)}, run{cluster, small_job(strategy, join_layers, join_batch, 3), 4, join_steps} {
    run.settings.coordinator = noting_broadcasts(cluster, broadcasts);
    run.start();
    run.run_steps(1);
    for (auto rank : lost)
      run.kill(rank);
    run.finish();
    REQUIRE(run.problem() == "");
    const auto alone = weights_alone(join_batch, join_steps, join_layers);
    for (uint32_t layer = 0; layer < join_layers; ++layer)
      CHECK(distance(run.weights(layer), alone[layer]) < 1e-12);
    REQUIRE(run.reports.back().ranks == 4);
  }
  /// Parts, counted once for each rank that got one.
  int handed_on() const {
    return std::accumulate(broadcasts.begin(), broadcasts.end(), -static_cast<int>(broadcasts.size()));
  }

  simulated_cluster cluster;
  std::vector<int> broadcasts;
  simulated_training run;
};

} // namespace

TEST_CASE("joins: a device gets weights and states by broadcast, and several devices get them together") {
  uint64_t together = 0; // unless one joins a step later
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    joined_run one{"ddp", {1}, seed};
    CHECK(one.broadcasts == std::vector<int>(2 * join_layers, 2)); // of each layer's weight and state
    joined_run two{"ddp", {1, 3}, seed};
    CHECK(two.handed_on() == 2 * 2 * join_layers);
    together += std::ranges::count(two.broadcasts, 3) > 0 ? 1 : 0;
  }
  CHECK(together > 4);
}

TEST_CASE("joins: shards that are cut in another way are assembled, and whole values are broadcast") {
  joined_run weights_whole{"zero1", {2}, 3};
  CHECK(weights_whole.handed_on() == join_layers);
  joined_run all_cut{"zero3", {2}, 3};
  CHECK(all_cut.handed_on() == 0);
}
