// Devices that hang and go on: wherever it strikes, a short while costs its time, a long one the device.
#include "runtime/algorithms/registry.hpp"
#include "tests/support/actor_state.hpp"
#include "tests/support/simulated_client.hpp"
#include "tests/support/trials/all_reduce_trial.hpp"

#include <fmt/format.h>

#include <algorithm>

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
  done   ///< It has nothing left to do, and no rank waits for it.
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
    CHECK(contains(x.status.asyncerror(), "hangs: ") == (its != share::done));
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

TEST_CASE("hangs: where idle devices are not asked, one that no rank waits for is not detected, however long") {
  simulated_cluster cluster{with_devices(3)};
  all_reduce_trial trial{cluster, {.ranks = 3}};
  cluster.inject(trial.device(1), fault(proto::FaultRequest::HANG, std::nullopt, 5s));
  cluster.deliver_all(); // to its streams, whose five seconds begin
  cluster.advance(6s);
  REQUIRE(trial.launch() == "");
  auto status = cluster.wait(trial.comm.commid());
  CHECK(status.asyncerror() == "");
  CHECK(trial.judge({0, 1, 2}, {0, 1, 2}) == "");
}

namespace {

/// A cluster of which one free device hangs.
struct free_hang {
  free_hang(simulation_options how, uint64_t device, caf::timespan how_long = {}) : cluster{how} {
    cluster.await_devices(how.devices);
    cluster.inject(device, fault(proto::FaultRequest::HANG, std::nullopt, how_long));
  }

  gpu_sim::CommInitResponse init(const std::vector<uint64_t>& named, uint32_t count = 0) {
    gpu_sim::CommInitRequest request;
    request.set_numdevices(count);
    for (auto id : named)
      request.add_deviceids(id);
    request.set_defaultpolicy(true);
    return cluster.ask_coordinator<gpu_sim::CommInitResponse>(request);
  }
  proto::ClusterInfo info() { return cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{}); }

  simulated_cluster cluster;
};

std::vector<uint64_t> ids_in(const gpu_sim::CommInitResponse& x) {
  std::vector<uint64_t> result;
  for (auto& device : x.devices())
    result.push_back(device.deviceid().value());
  return result;
}

/// The devices of two communicators of two that are asked for at once.
std::vector<uint64_t> two_pairs_at_once(free_hang& x) {
  gpu_sim::CommInitRequest two;
  two.set_numdevices(2);
  two.set_defaultpolicy(true);
  simulated_client client{x.cluster};
  auto first = client.ask<gpu_sim::CommInitResponse>(x.cluster.host, two);
  auto second = client.ask<gpu_sim::CommInitResponse>(x.cluster.host, two);
  auto one = ids_in(client.wait_for(first)), other = ids_in(client.wait_for(second));
  CHECK(one.size() == 2);
  CHECK(other.size() == 2);
  one.insert(one.end(), other.begin(), other.end());
  std::ranges::sort(one);
  return one;
}

} // namespace

TEST_CASE("hangs: a free device that hangs is ended when a communicator wants it, and another one taken") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    auto how = with_devices(4, seed);
    how.journaled = true;
    free_hang x{how, 2};
    auto made = x.init({}, 3);
    CHECK(made.error() == "");
    CHECK(ids_in(made) == std::vector<uint64_t>{1, 3, 4});
    CHECK(time_of(x.cluster) >= 2s);
    CHECK(time_of(x.cluster) < 3s);
    CHECK(x.info().devices_size() == 3);
    size_t told = 0;
    for (auto& record : x.cluster.history())
      if (record.has_device_died() && record.device_died().device_id() == 2)
        told += contains(record.device_died().cause(), "it gave no sign of life for 2 s when a communicator wanted it");
    CHECK(told == 1);
  }
}

TEST_CASE("hangs: what its supervisor starts in place of a hung free device is waited for") {
  auto how = with_devices(3);
  how.supervised = true;
  free_hang x{how, 2};
  auto made = x.init({}, 3);
  CHECK(made.error() == "");
  CHECK(made.devices_size() == 3);
  CHECK(x.info().devices_size() == 3);
}

TEST_CASE("hangs: a communicator that cannot be made says which free device hung") {
  free_hang few{with_devices(2), 1};
  auto refused = few.init({}, 2);
  CHECK_MESSAGE(contains(refused.error(), "CommInit asks for 2 devices, but 1 are free"), refused.error());
  CHECK_MESSAGE(contains(refused.error(), "; device 0x1 gave no sign of life for 2 s and was ended"), refused.error());
  CHECK(time_of(few.cluster) < 4s);
  free_hang named{with_devices(3), 3};
  refused = named.init({1, 3});
  CHECK_MESSAGE(contains(refused.error(), "device 0x3 has died: it gave no sign of life for 2 s"), refused.error());
  CHECK(ids_in(named.init({1, 2})) == std::vector<uint64_t>{1, 2});
}

TEST_CASE("hangs: a free device that goes on before its second limit is taken, and two calls at once share nothing") {
  free_hang x{with_devices(4), 1, 1500ms};
  CHECK(two_pairs_at_once(x) == std::vector<uint64_t>{1, 2, 3, 4});
  CHECK(x.info().devices_size() == 4);
}

TEST_CASE("hangs: two calls at once that want the same hung device both get others") {
  free_hang x{with_devices(5), 1};
  CHECK(two_pairs_at_once(x) == std::vector<uint64_t>{2, 3, 4, 5});
  CHECK(x.info().devices_size() == 4);
}
