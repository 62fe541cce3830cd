#include "actors/streams/stream.hpp"

#include "tests/support/simulated_client.hpp"
#include "tests/support/trials/all_reduce_trial.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

simulation_options seeded(uint64_t seed) {
  simulation_options result;
  result.seed = seed;
  return result;
}

trial_options elements(uint64_t count) {
  trial_options result;
  result.count = count;
  return result;
}

void abort(simulated_client& host, const all_reduce_trial& trial) {
  proto::CommAbortRequest request;
  request.set_comm_id(trial.comm.commid());
  host.wait_for(host.ask<proto::CommAbortResponse>(host.cluster.host, request));
}

} // namespace

TEST_CASE("stream: a command that was told to go on later does not wake the one after it") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    simulated_cluster cluster{seeded(seed)};
    simulated_client host{cluster};
    all_reduce_trial trial{cluster, elements(400)};
    auto device = trial.device(0);
    REQUIRE(trial.launch() == "");
    auto after = host.begin_receive(device, 4711, trial.input_address(0), 8, 1, host.default_stream(device));
    REQUIRE(after.error() == "");
    abort(host, trial);
    CHECK(host.ended(device, 4711).status() == gpu_sim::FAILED);
  }
}

TEST_CASE("stream: what comes after a stalled command does not wait for the stall to end") {
  simulated_cluster cluster{{}};
  simulated_client host{cluster};
  all_reduce_trial trial{cluster, elements(40)};
  auto device = trial.device(0);
  proto::FaultRequest slow;
  slow.set_kind(proto::FaultRequest::SLOW);
  slow.set_delay_ns(3600ull * 1000 * 1000 * 1000);
  cluster.inject(device, slow);
  REQUIRE(trial.launch() == "");
  auto began = time_of(cluster);
  auto copied = host.copy_out(device, trial.input_address(0), 320); // five slices
  abort(host, trial);
  CHECK(host.wait_for(copied).error() == "");
  CHECK(time_of(cluster) - began < 1s);
}
