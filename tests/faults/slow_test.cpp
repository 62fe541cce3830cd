// Devices that are slower than the others of their communicator: named while they work, and not lost.
#include "tests/support/simulated_client.hpp"
#include "tests/support/trials/all_reduce_trial.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

/// All-reduces one after the other, on devices of which each is slowed on request.
struct slowed_ranks {
  slowed_ranks(const char* algorithm, const std::vector<caf::timespan>& delays, uint64_t seed)
    : cluster{journaled(static_cast<uint32_t>(delays.size()), seed)},
      trial{cluster, {.algorithm = algorithm, .ranks = static_cast<uint32_t>(delays.size()), .in_place = false}} {
    for (uint32_t rank = 0; rank < delays.size(); ++rank)
      if (delays[rank].count() > 0)
        cluster.inject(trial.device(rank), fault(proto::FaultRequest::SLOW, std::nullopt, delays[rank]));
  }

  static simulation_options journaled(uint32_t devices, uint64_t seed) {
    auto result = with_devices(devices, seed);
    result.journaled = true;
    return result;
  }

  void work(std::chrono::nanoseconds time) {
    for (const auto until = time_of(cluster) + time; time_of(cluster) < until;) {
      REQUIRE(trial.launch() == "");
      CHECK(cluster.wait(trial.comm.commid()).epoch() == 1);
    }
  }

  proto::CommunicatorStatus status() {
    auto all = cluster.ask_coordinator<proto::ClusterStatus>(proto::ClusterStatusRequest{});
    REQUIRE(all.communicators_size() == 1);
    return all.communicators(0);
  }

  std::vector<proto::DeviceSlow> records() {
    std::vector<proto::DeviceSlow> result;
    for (auto& record : cluster.history())
      if (record.has_device_slow())
        result.push_back(record.device_slow());
    return result;
  }

  simulated_cluster cluster;
  all_reduce_trial trial;
};

} // namespace

TEST_CASE("slow: a device ten times slower than the others is named within 5 s in status and journal, and stays") {
  for (auto algorithm : {"ring", "direct"}) {
    CAPTURE(algorithm);
    slowed_ranks x{algorithm, {10ms, 10ms, 100ms, 10ms}, 1};
    x.work(4s);
    const auto found = x.records();
    REQUIRE(found.size() == 1);
    CHECK(found[0].comm_id() == x.trial.comm.commid());
    CHECK(found[0].device_id() == x.trial.device(2));
    CHECK_FALSE(found[0].has_ended());
    CHECK(found[0].slowness().factor() == doctest::Approx(10).epsilon(0.2));
    const auto status = x.status();
    CHECK(status.ranks_size() == 4);
    for (int rank = 0; rank < 4; ++rank)
      CHECK(status.ranks(rank).has_slow() == (rank == 2));
  }
}

TEST_CASE("slow: a device up to three times slower than the others is not named") {
  for (auto algorithm : {"ring", "direct"}) {
    CAPTURE(algorithm);
    slowed_ranks x{algorithm, {10ms, 10ms, 30ms, 10ms}, 2};
    x.work(10s);
    CHECK(x.records().empty());
  }
}

TEST_CASE("slow: when it is as fast as the others again, that is said") {
  slowed_ranks x{"ring", {10ms, 10ms, 100ms, 10ms}, 4};
  x.work(4s);
  x.cluster.inject(x.trial.device(2), fault(proto::FaultRequest::SLOW, std::nullopt, 10ms));
  x.work(5s);
  const auto found = x.records();
  REQUIRE(found.size() == 2);
  CHECK(found[1].has_ended());
  CHECK_FALSE(x.status().ranks(2).has_slow());
}
