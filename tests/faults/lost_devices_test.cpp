// Single devices die while others of their process live, and while messages with their handles are on the way: such a
// handle arrives at its own process as that of a dead actor.
#include "actors/training/training_rank.hpp"
#include "tests/support/actor_state.hpp"
#include "tests/support/nodes/simulated_nodes.hpp"
#include "tests/support/text_search.hpp"
#include "tests/support/training/one_layer.hpp"
#include "tests/support/trials/collective_trial.hpp"

#include <fmt/format.h>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

constexpr auto way = 5ms; // of each message: what happens meanwhile is not known at the other end

nodes_options far_nodes(std::vector<uint32_t> devices, proto::FailurePolicy policy = proto::SHRINK,
                        bool one_host = false) {
  nodes_options result;
  result.devices = std::move(devices);
  result.policy = policy;
  result.one_host = one_host;
  result.network.delay = way;
  result.eager_bytes = 64;
  return result;
}

std::vector<uint64_t> devices_of(simulated_nodes& cluster) {
  const auto info = cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{});
  std::vector<uint64_t> result;
  for (auto& each : info.devices())
    result.push_back(each.metadata().deviceid().value());
  return result;
}

} // namespace

TEST_CASE("lost devices: one that dies while orders are on the way ends no process, whatever is called") {
  for (auto policy : {proto::SHRINK, proto::REPLACE, proto::ABORT})
    for (bool one_host : {false, true})
      for (const char* algorithm : {"ring", "direct", "auto"})
        for (uint32_t victim : {0, 1, 2}) {
          CAPTURE(proto::FailurePolicy_Name(policy));
          CAPTURE(one_host);
          CAPTURE(algorithm);
          CAPTURE(victim);
          simulated_nodes cluster{far_nodes({3, 2}, policy, one_host)};
          collective_options what;
          what.algorithm = algorithm;
          what.ranks = 4;
          collective_trial trial{cluster, what};
          cluster.kill_device(trial.device(victim));
          REQUIRE(trial.launch() == ""); // the coordinator learns of the death after the orders have left
          auto status = cluster.wait(trial.comm.commid());
          CHECK(trial.judge([&](uint64_t device) { return !cluster.is_there(device); }) == "");
          if (policy == proto::ABORT) {
            CHECK(status.status() == gpu_sim::FAILED);
            CHECK(status.error() != "");
          } else {
            CHECK(status.status() == gpu_sim::SUCCESS);
            CHECK(status.devices_size() == (policy == proto::SHRINK ? 3 : 4));
          }
          cluster.run_for(1s);
          CHECK(devices_of(cluster).size() == 5); // its node has started another one
          CHECK(cluster.end() == "");
        }
}

TEST_CASE("lost devices: a transfer to one that died while its communicator was made is refused with a sentence") {
  for (auto policy : {proto::SHRINK, proto::REPLACE, proto::ABORT}) {
    CAPTURE(proto::FailurePolicy_Name(policy));
    simulated_nodes cluster{far_nodes({2}, policy)};
    auto ids = devices_of(cluster);
    cluster.later(way * 2 + way / 2, [&] { cluster.kill_device(ids[1]); }); // it has said that it lives
    auto comm = cluster.init(2);
    auto survivor = comm.devices(comm.devices(0).deviceid().value() == ids[1] ? 1 : 0);
    auto victim_rank = comm.devices(0).deviceid().value() == ids[1] ? 0u : 1u;
    gpu_sim::BeginSendRequest send;
    send.mutable_sendbuffaddr()->set_value(survivor.minmemaddr().value());
    send.set_numbytes(64);
    send.mutable_dstrank()->set_value(victim_rank);
    send.set_commid(comm.commid());
    auto sent = cluster.ask_coordinator<gpu_sim::BeginSendResponse>(survivor.deviceid(), send);
    CHECK_FALSE(sent.initiated());
    CHECK(sent.error()
          == fmt::format("rank {} of communicator {}, device 0x{:x}, is lost", victim_rank, comm.commid(), ids[1]));
    gpu_sim::BeginReceiveRequest receive;
    receive.mutable_streamid()->set_value(4711);
    receive.mutable_recvbuffaddr()->set_value(survivor.minmemaddr().value());
    receive.set_numbytes(64);
    receive.mutable_srcrank()->set_value(victim_rank);
    receive.set_commid(comm.commid());
    auto received = cluster.ask_coordinator<gpu_sim::BeginReceiveResponse>(survivor.deviceid(), receive);
    CHECK(received.error() != "");
    cluster.run_for(1s);
    CHECK(devices_of(cluster).size() == 2);
    CHECK(cluster.end() == "");
  }
}

TEST_CASE("lost devices: a rank that trains on one whose handle arrives too late ends with its device") {
  simulated_nodes cluster{far_nodes({2})};
  auto ids = devices_of(cluster);
  auto where = cluster.host_index_of(ids[0]).value();
  auto& sys = cluster.process(where).sys;
  auto silent = sys.spawn([](training::trainer_actor::pointer) -> training::trainer_actor::behavior_type {
    return {[](const training::rank_ready&) {},
            [](const std::vector<training::rank_arrival>&) {},
            [](const training::room_found&) {},
            [](const training::part_wanted&) {},
            [](const training::rank_ended&) {},
            [](const training::rank_failed&) {},
            [](const training::rank_alive&) {},
            [](const training::rank_leaving&) {},
            [](atom::expire) {},
            [](atom::resume) {},
            [](atom::tick) {},
            [](atom::resume, uint64_t) {}};
  });
  training::rank_settings its;
  its.coordinator = state_of<node_state>(cluster.node_of(where)).options.coordinator;
  its.trainer = silent;
  its.device = device_id{ids[0]};
  auto rank = sys.spawn(training::training_rank, its);
  caf::error why;
  bool ended = false;
  rank->attach_functor([&](const caf::error& x) {
    ended = true;
    why = x;
  });
  cluster.later(way + way / 2, [&] { cluster.kill_device(ids[0]); }); // the coordinator has answered
  cluster.run_until([&] { return ended; });
  CHECK(code_of(why) == errc::device_lost);
  caf::anon_send_exit(silent, caf::exit_reason::user_shutdown);
  rank = nullptr;
  silent = nullptr;
  CHECK(cluster.end() == "");
}
