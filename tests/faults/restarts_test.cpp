// The coordinator's process is killed at every moment and restarted on its store: clusters of several processes in
// virtual time.
#include "tests/support/nodes/simulated_nodes.hpp"
#include "tests/support/text_search.hpp"
#include "tests/support/trials/all_reduce_trial.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

nodes_options restartable(uint64_t seed, bool one_host) {
  nodes_options result;
  result.seed = seed;
  result.restarts = true;
  result.one_host = one_host;
  result.network.spread = 200us;
  return result;
}

proto::ClusterInfo info_of(simulated_nodes& cluster) {
  proto::ClusterInfoRequest request;
  request.set_communicators(true);
  return cluster.ask_coordinator<proto::ClusterInfo>(request);
}

} // namespace

TEST_CASE("restarts: an idle cluster is found again: nodes, devices with their memory, communicators, ids") {
  simulated_nodes cluster{restartable(1, false)};
  all_reduce_trial trial{cluster, {.in_place = false}};
  const auto before = info_of(cluster);
  for (int i = 0; i < 3; ++i) {
    cluster.kill(0);
    cluster.run_for(50ms);
    cluster.restart_coordinator();
    const auto after = info_of(cluster);
    CHECK(after.devices_size() == before.devices_size());
    for (int k = 0; k < before.devices_size(); ++k)
      CHECK(after.devices(k).metadata().deviceid().value() == before.devices(k).metadata().deviceid().value());
    REQUIRE(after.nodes_size() == before.nodes_size());
    for (int k = 0; k < before.nodes_size(); ++k)
      CHECK(after.nodes(k).node_id() == before.nodes(k).node_id());
    REQUIRE(after.communicators_size() == 1);
    CHECK(after.communicators(0).comm_id() == before.communicators(0).comm_id());
  }
  // It is served as if nothing had happened, and no id is given twice.
  REQUIRE(trial.launch() == "");
  CHECK(cluster.wait(trial.comm.commid()).error() == "");
  CHECK(trial.judge(trial.ranks_but({}), trial.ranks_but({})) == "");
  CHECK(cluster.end() == "");
}

TEST_CASE("restarts: an operation ends with the right result wherever the coordinator is killed in it") {
  uint64_t seed = 0, failed = 0, reran = 0;
  for (const char* algorithm : {"ring", "direct"})
    for (bool in_place : {true, false})
      for (uint32_t steps = 0; steps < 240; steps += 5) {
        CAPTURE(algorithm);
        CAPTURE(in_place);
        CAPTURE(steps);
        simulated_nodes cluster{restartable(++seed, std::string_view{algorithm} == "direct")};
        all_reduce_trial trial{cluster, {.algorithm = algorithm, .in_place = in_place}};
        REQUIRE(trial.launch() == "");
        for (uint32_t i = 0; i < steps; ++i)
          cluster.step();
        cluster.kill(0);
        cluster.run_for(20ms);
        cluster.restart_coordinator();
        const auto status = cluster.wait(trial.comm.commid());
        CHECK(status.devices_size() == 4);
        reran += status.epoch() > 1;
        if (status.status() == gpu_sim::SUCCESS) {
          CHECK(trial.judge(trial.ranks_but({}), trial.ranks_but({})) == "");
        } else {
          ++failed;
          CHECK(contains(status.error(), "coordinator's process ended"));
        }
        CHECK(cluster.end() == "");
      }
  CHECK(reran > 0);
  CHECK(failed < seed / 8);
}

TEST_CASE("restarts: a node that does not come back is lost, and the others go on") {
  simulated_nodes cluster{restartable(7, false)};
  all_reduce_trial trial{cluster, {.in_place = true}};
  REQUIRE(trial.launch() == "");
  for (int i = 0; i < 40; ++i)
    cluster.step();
  cluster.kill(0);
  cluster.kill(2);
  cluster.run_for(20ms);
  cluster.restart_coordinator();
  const auto status = cluster.wait(trial.comm.commid());
  CHECK(status.error() == "");
  CHECK(status.devices_size() == 2);
  CHECK(contains(status.asyncerror(), "was lost"));
  std::vector<uint32_t> there;
  for (uint32_t rank = 0; rank < 4; ++rank)
    if (cluster.is_there(trial.device(rank)))
      there.push_back(rank);
  CHECK(trial.judge(there, there) == "");
}
