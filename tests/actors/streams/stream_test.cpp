#include "actors/streams/stream.hpp"

#include "tests/support/simulated_client.hpp"
#include "tests/support/trials/all_reduce_trial.hpp"

#include <filesystem>

#include <sys/stat.h>

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

/// What the devices' memory files hold, in all.
uint64_t bytes_held(const simulated_cluster& cluster) {
  uint64_t result = 0;
  for (auto& entry : std::filesystem::recursive_directory_iterator{cluster.dir}) {
    struct stat now;
    REQUIRE(::stat(entry.path().c_str(), &now) == 0);
    result += static_cast<uint64_t>(now.st_blocks) * 512;
  }
  return result;
}

void abort(simulated_client& host, const all_reduce_trial& trial) {
  proto::CommAbortRequest request;
  request.set_comm_id(trial.comm.commid());
  host.wait_for(host.ask<proto::CommAbortResponse>(host.cluster.host, request));
}

} // namespace

TEST_CASE("stream: a command that was to resume later does not wake the one after it") {
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

TEST_CASE("stream: large outputs get their memory part by part, and the stream handles messages in between") {
  constexpr uint64_t mebibyte = 1u << 20, bytes = 24 * mebibyte;
  simulation_options opts;
  opts.devices = 2;
  opts.memory_bytes = 64 * mebibyte;
  opts.slice_bytes = mebibyte;
  opts.share_memory = false; // each rank walks
  simulated_cluster cluster{opts};
  auto comm = cluster.init(2);
  proto::CollectiveRequest request;
  request.set_comm_id(comm.commid());
  request.mutable_collective()->set_algorithm("ring");
  request.mutable_collective()->set_datatype(proto::FLOAT32);
  request.mutable_collective()->set_count(bytes / sizeof(float));
  for (auto& device : comm.devices()) {
    request.add_inputs(device.minmemaddr().value());
    request.add_outputs(device.minmemaddr().value() + 32 * mebibyte);
  }
  auto before = bytes_held(cluster);
  REQUIRE(cluster.ask_coordinator<proto::CollectiveResponse>(request).error() == "");
  uint64_t most = 0;
  for (auto last = bytes_held(cluster); last < before + 4 * bytes;) { // inputs, which are read, and outputs
    REQUIRE(cluster.step());
    auto now = bytes_held(cluster);
    most = std::max(most, now - std::min(now, last));
    last = now;
  }
  CHECK(most >= mebibyte);
  CHECK(most <= 10 * mebibyte); // a turn's, and a page across two
  CHECK(cluster.wait(comm.commid()).status() == gpu_sim::SUCCESS);
}
