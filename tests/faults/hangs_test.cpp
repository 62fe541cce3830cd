// Devices that hang and go on: wherever it strikes, a short while costs its time, a long one the device.
#include "runtime/algorithms/registry.hpp"
#include "tests/support/actor_state.hpp"
#include "tests/support/simulated_client.hpp"
#include "tests/support/trials/all_reduce_trial.hpp"

#include <fmt/format.h>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

/// An all-reduce of three ranks of which the middle one hangs: at once, or at a step.
struct hanging_rank {
  hanging_rank(const char* algorithm, std::optional<uint32_t> step, caf::timespan how_long, uint64_t seed)
    : cluster{with_devices(3, seed)}, trial{cluster, {.algorithm = algorithm, .ranks = 3}},
      memory{state_of<device_state>(device_of(cluster, trial.device(1))).memory} {
    cluster.inject(trial.device(1), fault(proto::FaultRequest::HANG, step, how_long));
    REQUIRE(trial.launch() == "");
    status = cluster.wait(trial.comm.commid());
  }

  std::vector<std::byte> all_bytes() const {
    auto all = *memory->at(memory->min_address(), memory->max_address() - memory->min_address());
    return {all.begin(), all.end()};
  }
  size_t devices() { return cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{}).devices_size(); }

  simulated_cluster cluster;
  all_reduce_trial trial;
  std::shared_ptr<device_memory> memory; ///< Of the one that hangs; it outlives the device.
  gpu_sim::GetCommStatusResponse status;
};

/// What the others have of a rank that hangs at this place.
enum class share {
  none,  ///< It is missing in the result.
  whole, ///< It is in it; the others wait until it has put the result in place.
  done   ///< It has nothing to do any more, and nobody waits for it.
};

/// For an algorithm of streams and one of joint operations: now, at each step, and when the result is put in place.
void for_each_place(const std::function<void(const char*, std::optional<uint32_t>, share, uint64_t)>& play) {
  uint64_t seed = 0;
  for (auto algorithm : {"ring", "direct"}) {
    const auto rounds = plan(proto::ALL_REDUCE, algorithm, {.world_size = 3, .count = 10})->rounds;
    const bool joint = std::string_view{algorithm} == "direct";
    for (uint32_t place = 0; place < rounds + 3; ++place) {
      auto step = place == 0 ? std::nullopt : std::optional{place - 1};
      CAPTURE(algorithm);
      CAPTURE(place);
      play(algorithm, step,
           joint && place > 1    ? share::done
           : place == rounds + 2 ? share::whole
                                 : share::none,
           ++seed);
    }
  }
}

} // namespace

TEST_CASE("hangs: a short one costs its time and nothing else, wherever it strikes") {
  for_each_place([](const char* algorithm, std::optional<uint32_t> step, share, uint64_t seed) {
    hanging_rank x{algorithm, step, 300ms, seed};
    CHECK(x.status.error() == "");
    CHECK(x.status.asyncerror() == "");
    CHECK(x.status.devices_size() == 3);
    CHECK(x.trial.judge({0, 1, 2}, {0, 1, 2}) == "");
    CHECK(time_of(x.cluster) >= 300ms);
    CHECK(time_of(x.cluster) < 1s);
    CHECK(x.devices() == 3);
  });
}

TEST_CASE("hangs: a long one is a loss, and nothing is changed in the device's memory when its time is over") {
  for_each_place([](const char* algorithm, std::optional<uint32_t> step, share its, uint64_t seed) {
    hanging_rank x{algorithm, step, 5s, seed};
    CHECK(time_of(x.cluster) < 4s);
    CHECK(x.status.error() == "");
    CHECK(contains(x.status.asyncerror(), "was lost") == (its != share::done));
    const auto contributors = its == share::none ? x.trial.ranks_but({1}) : x.trial.ranks_but({});
    CHECK(x.trial.judge(contributors, {0, 2}) == "");
    CHECK(x.devices() == (its == share::done ? 3 : 2));
    const auto before = x.all_bytes();
    x.cluster.advance(10s);
    CHECK(x.all_bytes() == before);
    CHECK(x.devices() == (its == share::done ? 3 : 2));
    CHECK(x.trial.judge(contributors, x.trial.ranks_but(its == share::done ? std::vector<uint32_t>{} : std::vector{1u}))
          == "");
  });
}

TEST_CASE("hangs: one that nobody waits for is noticed by nobody, however long") {
  simulated_cluster cluster{with_devices(3)};
  all_reduce_trial trial{cluster, {.ranks = 3}};
  cluster.inject(trial.device(1), fault(proto::FaultRequest::HANG, std::nullopt, 5s));
  cluster.advance(6s);
  REQUIRE(trial.launch() == "");
  auto status = cluster.wait(trial.comm.commid());
  CHECK(status.asyncerror() == "");
  CHECK(trial.judge({0, 1, 2}, {0, 1, 2}) == "");
}
