// Devices that hang and processes that fall silent while nothing is in flight: every survivor knows within 1.5 s. And
// pauses that are no loss.
#include "tests/support/histories/played_seeds.hpp"
#include "tests/support/nodes/simulated_nodes.hpp"
#include "tests/support/trials/collective_trial.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

/// A communicator of all devices of nodes that have nothing to do.
struct idle_nodes {
  idle_nodes(uint64_t seed, std::vector<uint32_t> devices)
    : cluster{options_of(seed, devices)}, comm{cluster.init(std::accumulate(devices.begin(), devices.end(), 0u))} {
    cluster.run_for(1s + seed * 37ms); // the fault strikes at any time between two requests
  }

  static nodes_options options_of(uint64_t seed, std::vector<uint32_t> devices) {
    nodes_options result;
    result.seed = seed;
    result.devices = std::move(devices);
    result.idle_interval = suspicion::options{}.idle_interval;
    return result;
  }

  std::vector<uint64_t> devices_of(size_t process) {
    std::vector<uint64_t> result;
    for (auto& device : comm.devices())
      if (cluster.host_index_of(device.deviceid().value()) == process)
        result.push_back(device.deviceid().value());
    return result;
  }

  /// How long it takes until the devices of all others are in an epoch without these.
  caf::timespan until_all_know(const std::vector<uint64_t>& lost) {
    const std::set<uint64_t> gone{lost.begin(), lost.end()};
    std::vector<device_state*> survivors;
    for (auto& device : comm.devices())
      if (!gone.contains(device.deviceid().value()))
        survivors.push_back(&cluster.device_at(device.deviceid().value()));
    const auto begun = cluster.now();
    const auto knows = [&](device_state* of) {
      const auto known = of->communicators.find(communicator_id{comm.commid()});
      return known != of->communicators.end() && known->second.members->epoch() > 1
             && known->second.members->devices_size() == static_cast<int>(survivors.size());
    };
    while (!std::ranges::all_of(survivors, knows) && cluster.now() - begun < 10s)
      cluster.step();
    return cluster.now() - begun;
  }

  std::vector<proto::Suspicion> suspicions() {
    std::vector<proto::Suspicion> result;
    for (auto& record : cluster.history())
      if (record.has_device_died() && record.device_died().noticed_by() == "suspicion")
        result.push_back(record.device_died().suspicion());
    return result;
  }

  simulated_nodes cluster;
  gpu_sim::CommInitResponse comm;
};

const std::vector<uint32_t> eight_by_eight(8, 8);

} // namespace

TEST_CASE("idle hangs: a device that hangs is found by all within 1.5 s, among 64 on eight nodes") {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    idle_nodes x{seed, eight_by_eight};
    const auto lost = x.devices_of(1 + seed).at(seed);
    x.cluster.fault_later(lost, fault(proto::FaultRequest::HANG));
    CHECK(x.until_all_know({lost}) < 1500ms);
    const auto found = x.suspicions();
    REQUIRE(found.size() == 1);
    CHECK(found[0].cause() == proto::Suspicion::NO_ANSWER);
    CHECK(found[0].late() == 3);
    const auto status = x.cluster.wait(x.comm.commid());
    CHECK(status.devices_size() == 63);
    CHECK(status.asyncerror().find("hangs: 3 of its last") != std::string::npos);
    CHECK(x.cluster.end() == "");
  }
}

TEST_CASE("idle hangs: a process that is stopped is found by all within 1.5 s") {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    idle_nodes x{seed, eight_by_eight};
    const auto lost = x.devices_of(1 + seed);
    x.cluster.pause(1 + seed);
    CHECK(x.until_all_know(lost) < 1500ms);
    const auto found = x.suspicions();
    REQUIRE(found.size() == 8);
    for (auto& each : found)
      CHECK(each.cause() == proto::Suspicion::PROCESS_SILENT);
    x.cluster.resume(1 + seed);
    x.cluster.run_for(1s);
    auto info = x.cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{});
    CHECK(info.nodes_size() == 8);
    CHECK(info.devices_size() == 64); // with eight new ones
    CHECK(x.cluster.end() == "");
  }
}

TEST_CASE("idle hangs: behind a link that is cut silently all devices are lost within 1.5 s") {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    idle_nodes x{seed, eight_by_eight};
    const auto lost = x.devices_of(2);
    for (size_t other = 0; other < x.cluster.processes(); ++other)
      if (other != 2)
        x.cluster.stall(other, 2);
    CHECK(x.until_all_know(lost) < 1500ms);
    CHECK(x.suspicions().size() == 8);
    CHECK(x.cluster.wait(x.comm.commid()).devices_size() == 56);
    x.cluster.mend();
    CHECK(x.cluster.end() == "");
  }
}

TEST_CASE("idle hangs: a free device that hangs is replaced before any communicator wants it") {
  simulated_nodes cluster{idle_nodes::options_of(1, {2, 2})};
  cluster.fault_later(2, fault(proto::FaultRequest::HANG));
  cluster.run_for(2s);
  const auto begun = cluster.now();
  const auto comm = cluster.init(4);
  CHECK(cluster.now() - begun < 100ms);
  CHECK(comm.devices_size() == 4);
  for (auto& device : comm.devices())
    CHECK(device.deviceid().value() != 2);
  CHECK(cluster.end() == "");
}

// RINGMASTER_SEEDS: another number of them.
TEST_CASE("idle hangs: random pauses of up to 500 ms of any process, the coordinator's too, are no loss") {
  for (uint64_t seed = 1; seed <= number_from("RINGMASTER_SEEDS", 20); ++seed) {
    CAPTURE(seed);
    idle_nodes x{seed, {2, 2, 2, 2}};
    std::mt19937_64 random{seed};
    constexpr auto in_all = 20s;
    for (size_t process = 0; process < x.cluster.processes(); ++process)
      for (caf::timespan at{0}; at < in_all;) {
        at += 1ms * (100 + random() % 1000);
        const auto length = 1ms * (1 + random() % 500);
        x.cluster.later(at, [&x, process] { x.cluster.pause(process); });
        at += length;
        x.cluster.later(at, [&x, process] { x.cluster.resume(process); });
      }
    collective_options ring;
    ring.algorithm = "ring";
    ring.ranks = 8;
    ring.count = 400;
    if (seed % 2 == 0) { // busy half of the time
      collective_trial trial{x.cluster, ring, x.comm, 0};
      for (int i = 0; i < 20; ++i) {
        REQUIRE(trial.launch() == "");
        CHECK(x.cluster.wait(x.comm.commid()).epoch() == 1);
        x.cluster.run_for(300ms);
      }
    }
    x.cluster.run_for(in_all + 2s);
    x.cluster.mend();
    CHECK(x.cluster.wait(x.comm.commid()).epoch() == 1);
    auto info = x.cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{});
    CHECK(info.devices_size() == 8);
    CHECK(info.gone_size() == 0);
    CHECK(x.cluster.end() == "");
  }
}
