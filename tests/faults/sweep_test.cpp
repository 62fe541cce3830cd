#include "runtime/algorithms/registry.hpp"
#include "tests/support/simulated_cluster.hpp"
#include "tests/support/trials/all_reduce_trial.hpp"

#include <algorithm>
#include <map>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

uint32_t rounds_of(const trial_options& x, uint32_t world_size) {
  return plan(proto::ALL_REDUCE, x.algorithm, {.world_size = world_size, .count = x.count})->rounds;
}

proto::FaultRequest kill_at(uint32_t step) {
  proto::FaultRequest fault;
  fault.set_at_step(true);
  fault.set_step(step);
  return fault;
}

/// Kills `victim` when `step` rounds are done. After the last round but one step more, every rank has finished: then
/// the operation counts as done by all.
void kill_and_judge(const simulation_options& how, const trial_options& what, uint32_t victim, uint32_t step) {
  simulated_cluster cluster{how};
  all_reduce_trial trial{cluster, what};
  cluster.inject(trial.device(victim), kill_at(step));
  REQUIRE(trial.launch() == "");
  auto status = cluster.wait(trial.comm.commid());
  CHECK(status.status() == gpu_sim::SUCCESS);
  CHECK(status.error() == "");
  auto survivors = trial.ranks_but({victim});
  bool decided = step > rounds_of(what, what.ranks);
  CHECK(trial.judge(decided ? trial.ranks_but({}) : survivors, survivors) == "");
  cluster.run_until([&] {
    return cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{}).devices_size()
           == static_cast<int>(what.ranks - 1);
  });
}

/// The ranks whose epoch ended the operation.
std::vector<uint32_t> deciding_group(simulated_cluster& cluster, const all_reduce_trial& trial) {
  std::map<uint64_t, std::vector<uint32_t>> epochs;
  auto ranks_of = [&](const auto& devices) {
    std::vector<uint32_t> result;
    for (uint32_t rank = 0; rank < trial.options.ranks; ++rank)
      if (std::count(devices.begin(), devices.end(), trial.device(rank)) != 0)
        result.push_back(rank);
    return result;
  };
  uint64_t decided = 0;
  for (auto& x : cluster.history())
    if (x.has_communicator_created())
      epochs[1] = ranks_of(x.communicator_created().device_ids());
    else if (x.has_epoch_opened())
      epochs[x.epoch_opened().epoch()] = ranks_of(x.epoch_opened().device_ids());
    else if (x.has_operation_ended())
      decided = x.operation_ended().epoch();
  return epochs.at(decided);
}

} // namespace

TEST_CASE("sweep: for every rank that dies at any step, the survivors hold the right result") {
  uint64_t seed = 0;
  for (auto algorithm : {"ring", "naive"})
    for (uint32_t ranks = 2; ranks <= 6; ++ranks)
      for (bool in_place : {true, false}) {
        trial_options what;
        what.algorithm = algorithm;
        what.ranks = ranks;
        what.count = 13;
        what.in_place = in_place;
        for (uint32_t victim = 0; victim < ranks; ++victim)
          for (uint32_t step = 0; step <= rounds_of(what, ranks) + 1; ++step) {
            CAPTURE(algorithm);
            CAPTURE(ranks);
            CAPTURE(in_place);
            CAPTURE(victim);
            CAPTURE(step);
            simulation_options how;
            how.seed = ++seed;
            how.devices = ranks;
            how.offer_memory = seed % 3 != 0;
            kill_and_judge(how, what, victim, step);
          }
      }
}

TEST_CASE("sweep: any two ranks die, at any two steps, of the first run or of the re-run") {
  uint64_t seed = 0;
  for (auto algorithm : {"ring", "naive"}) {
    trial_options what;
    what.algorithm = algorithm;
    auto rounds = rounds_of(what, what.ranks);
    for (uint32_t one = 0; one < what.ranks; ++one)
      for (uint32_t other = 0; other < what.ranks; ++other)
        for (uint32_t first = 0; first <= rounds && one != other; ++first)
          for (uint32_t second = 0; second <= rounds; ++second) {
            CAPTURE(algorithm);
            CAPTURE(one);
            CAPTURE(other);
            CAPTURE(first);
            CAPTURE(second);
            simulation_options how;
            how.seed = ++seed;
            how.journaled = true;
            simulated_cluster cluster{how};
            all_reduce_trial trial{cluster, what};
            cluster.inject(trial.device(one), kill_at(first));
            cluster.inject(trial.device(other), kill_at(second));
            REQUIRE(trial.launch() == "");
            auto status = cluster.wait(trial.comm.commid());
            CHECK(status.error() == "");
            // Where the re-run is shorter than `second`, the other lives. The journal says whose group decided it.
            auto group = deciding_group(cluster, trial);
            CHECK(group.size() >= 2);
            CHECK(group.size() <= 3);
            CHECK(trial.judge(group, trial.ranks_but({one, other})) == "");
          }
  }
}

TEST_CASE("sweep: when all but one have died, the one finishes alone; when all have, the status is FAILED") {
  for (bool all : {false, true}) {
    simulated_cluster cluster{{}};
    all_reduce_trial trial{cluster, {}};
    for (uint32_t rank = all ? 0 : 1; rank < 4; ++rank)
      cluster.inject(trial.device(rank), kill_at(rank % 2));
    REQUIRE(trial.launch() == "");
    auto status = cluster.wait(trial.comm.commid());
    if (all) {
      CHECK(status.status() == gpu_sim::FAILED);
      CHECK(status.error().find("no device is left") != std::string::npos);
    } else {
      CHECK(status.error() == "");
      CHECK(trial.judge({0}, {0}) == "");
    }
  }
}
