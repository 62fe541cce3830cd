// What the coordinator says of everyone, without waiting for anybody.
#include "tests/support/actor_state.hpp"
#include "tests/support/simulated_client.hpp"
#include "tests/support/trials/all_reduce_trial.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

using status_operation = proto::CommunicatorStatus::Operation;

simulation_options by_relays() {
  simulation_options result;
  result.relays = 2;
  result.offer_memory = false; // bytes go in messages
  return result;
}

proto::ClusterStatus status_of(simulated_cluster& cluster) {
  auto began = time_of(cluster);
  auto result = cluster.ask_coordinator<proto::ClusterStatus>(proto::ClusterStatusRequest{});
  CHECK(time_of(cluster) - began < 100ms);
  return result;
}

/// Asks when this much more time has passed.
proto::ClusterStatus status_after(simulated_cluster& cluster, caf::timespan passed) {
  auto when = time_of(cluster) + passed;
  cluster.run_until([&] { return time_of(cluster) >= when; });
  return status_of(cluster);
}

} // namespace

TEST_CASE("status: of idle communicators, what has been done and by which route") {
  simulated_cluster cluster{by_relays()};
  all_reduce_trial trial{cluster, {.count = 1024}};
  REQUIRE(trial.launch() == "");
  REQUIRE(cluster.wait(1).status() == gpu_sim::SUCCESS);
  auto status = status_of(cluster);
  CHECK(status.cluster().devices_size() == 4);
  REQUIRE(status.communicators_size() == 1);
  auto& x = status.communicators(0);
  CHECK(x.silent() == "");
  CHECK(x.comm_id() == 1);
  CHECK(x.state() == proto::CommunicatorStatus::ACTIVE);
  CHECK(x.ranks_size() == 4);
  CHECK(x.ranks(0).doing() == "idle");
  CHECK(x.operations_ended() == 1);
  CHECK(x.quiet_ns() > 0);
  CHECK(x.operations_met() == 0);
  CHECK(x.operations_in_flight() == 0);
  CHECK(x.still_ns() == 0);
  REQUIRE(x.routes_size() == 1);
  CHECK(x.routes(0).name() == "messages");
  CHECK(x.routes(0).bytes() == 4 * 2 * 3 * 1024 * 8 / 4); // of a ring: each rank gets 2 * 3 of 4 blocks
  CHECK(x.routes(0).bytes_per_s() == x.routes(0).bytes() / 5);
}

TEST_CASE("status: counts what ranks say that they have done on their page") {
  simulated_cluster cluster{{}};
  auto comm = cluster.init(2);
  auto began = status_of(cluster);
  proto::MetReport met;
  met.set_comm_id(comm.commid());
  met.set_operations(200);
  met.set_ended_ns(began.time_ns());
  for (int i = 0; i < 2; ++i)
    cluster.self->send(cluster.host, met);
  auto status = status_after(cluster, 50ms);
  CHECK(status.communicators(0).operations_met() == 400);
  CHECK(status.communicators(0).met_quiet_ns() == status.time_ns() - began.time_ns());
  CHECK(status.communicators(0).quiet_ns() == 0);
}

TEST_CASE("status: says who waits for whom, and how late one that hangs is, before it is given up") {
  simulated_cluster cluster{by_relays()};
  all_reduce_trial trial{cluster, {}};
  cluster.inject(trial.device(2), fault(proto::FaultRequest::HANG, 2));
  REQUIRE(trial.launch() == "");
  auto status = status_after(cluster, 650ms);
  REQUIRE(status.communicators_size() == 1);
  auto& x = status.communicators(0);
  REQUIRE(x.operations_size() == 1);
  CHECK(x.operations(0).phase() == status_operation::RUNNING);
  CHECK(x.operations(0).ranks_done() == 0);
  CHECK(x.operations(0).age_ns() >= 650'000'000);
  CHECK(x.operations_in_flight() == 1);
  CHECK(x.still_ns() > 300'000'000);
  REQUIRE(x.ranks_size() == 4);
  REQUIRE(x.ranks(3).waits_for_size() == 1); // its left neighbour in the ring
  CHECK(x.ranks(3).waits_for(0) == 2);
  CHECK(x.ranks(3).doing().find("waiting for rank 2's block") == 0);
  CHECK(x.ranks(3).late() == 0);
  CHECK(x.ranks(3).latest().round() == 2);
  CHECK(x.ranks(3).latest_age_ns() < 200'000'000);
  CHECK(x.ranks(2).late() > 0);
  CHECK(x.ranks(2).waits_for_size() == 0);
  CHECK(x.ranks(2).silent_ns() < 200'000'000); // its relay answers
}

TEST_CASE("status: of joint operations, who has come and who has not") {
  simulated_cluster cluster{{}};
  all_reduce_trial trial{cluster, {.algorithm = "direct"}};
  cluster.inject(trial.device(1), fault(proto::FaultRequest::HANG, 0));
  REQUIRE(trial.launch() == "");
  auto status = status_after(cluster, 300ms);
  auto& x = status.communicators(0);
  REQUIRE(x.operations_size() == 1);
  CHECK(x.operations(0).joint());
  CHECK(x.operations(0).ranks_done() == 3);
  for (int rank : {0, 2, 3}) {
    REQUIRE(x.ranks(rank).waits_for_size() == 1);
    CHECK(x.ranks(rank).waits_for(0) == 1);
  }
}

TEST_CASE("status: after the first operation others queue, and calls of ranks say whom they wait for") {
  simulated_cluster cluster{{}};
  simulated_client host{cluster};
  all_reduce_trial trial{cluster, {}};
  cluster.inject(trial.device(2), fault(proto::FaultRequest::SLOW, std::nullopt, 200ms));
  REQUIRE(trial.launch() == "");
  REQUIRE(trial.launch() == "");
  proto::RankCall call;
  call.set_comm_id(1);
  call.set_device_id(trial.device(0));
  call.set_epoch(1);
  call.add_parts()->mutable_collective()->set_kind(proto::BARRIER);
  host.ask<proto::RankCallResponse>(cluster.host, call);
  auto status = status_after(cluster, 150ms);
  auto& x = status.communicators(0);
  CHECK(x.operations_in_flight() == 2);
  REQUIRE(x.operations_size() == 2);
  CHECK(x.operations(1).sequence() == 2);
  CHECK(x.open_calls() == 1);
  REQUIRE(x.waiting_calls_size() == 1);
  CHECK(x.waiting_calls(0).waits_for().find("rank 1 (device 0x2) has not called barrier #3") == 0);
  CHECK(x.waiting_calls(0).age_ns() >= 150'000'000);
}

TEST_CASE("status: a communicator that does not answer is listed, with the devices that it has") {
  simulated_cluster cluster{{}};
  auto comm = cluster.init(3);
  auto silent = deaf(cluster);
  known_communicator deaf_one;
  deaf_one.handle = caf::actor_cast<caf::strong_actor_ptr>(silent);
  state_of<coordinator_state>(cluster.host).communicators.made(id_of(comm), std::move(deaf_one));
  auto status = status_of(cluster);
  REQUIRE(status.communicators_size() == 1);
  CHECK(status.communicators(0).comm_id() == comm.commid());
  CHECK(status.communicators(0).silent() == "communicator 1 did not answer within 0.1 s");
  CHECK(status.communicators(0).ranks_size() == 3);
  cluster.self->send_exit(silent, caf::exit_reason::kill);
}
