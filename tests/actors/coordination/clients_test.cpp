// What clients have made goes with them.
#include "tests/support/actor_state.hpp"
#include "tests/support/simulated_client.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

gpu_sim::CommInitRequest of_ranks(uint32_t ranks, bool outlives = false) {
  gpu_sim::CommInitRequest request;
  request.set_numdevices(ranks);
  request.set_outlivesclient(outlives);
  return request;
}

proto::AllocateRequest of_bytes(uint64_t bytes, bool outlives = false) {
  proto::AllocateRequest request;
  request.set_bytes(bytes);
  request.set_outlives_client(outlives);
  return request;
}

size_t communicators(simulated_cluster& cluster) {
  return state_of<coordinator_state>(cluster.host).communicators.alive().size();
}

proto::ClusterInfo info_of(simulated_cluster& cluster) {
  proto::ClusterInfoRequest request;
  request.set_communicators(true);
  return cluster.ask_coordinator<proto::ClusterInfo>(request);
}

/// Handles what is under way, without waiting for a time.
void run_messages(simulated_cluster& cluster) {
  while (!cluster.scheduler.jobs.empty())
    cluster.step();
}

/// What the coordinator says is found by this name.
caf::strong_actor_ptr found_by(simulated_cluster& cluster, const std::string& name) {
  return cluster.ask_coordinator<caf::strong_actor_ptr>(name);
}

constexpr uint64_t most_of_memory = 60000; ///< Of 65536 bytes.

} // namespace

TEST_CASE("clients: a communicator goes with the client that made it, and its devices are free") {
  simulation_options how;
  how.journaled = true;
  simulated_cluster cluster{how};
  {
    simulated_client mine{cluster};
    auto made = mine.wait_for(mine.ask<gpu_sim::CommInitResponse>(cluster.host, of_ranks(3)));
    REQUIRE(made.success());
    CHECK(cluster.init(2).code() == static_cast<uint32_t>(errc::too_few_devices));
  }
  cluster.run_until([&] { return communicators(cluster) == 0; });
  CHECK(cluster.init(4).success());
  auto records = cluster.history();
  auto destroyed = std::find_if(records.begin(), records.end(), [](auto& x) { return x.has_communicator_destroyed(); });
  REQUIRE(destroyed != records.end());
  CHECK(contains(destroyed->communicator_destroyed().reason(), "the client that made it has ended"));
}

TEST_CASE("clients: while an operation is under way, too, and with what was derived from it") {
  simulated_cluster cluster{{}};
  {
    simulated_client mine{cluster};
    auto made = mine.wait_for(mine.ask<gpu_sim::CommInitResponse>(cluster.host, of_ranks(4)));
    proto::CommDeriveRequest duplicate;
    duplicate.set_comm_id(made.commid());
    duplicate.mutable_split();
    REQUIRE(mine.wait_for(mine.ask<proto::CommDeriveResponse>(cluster.host, duplicate)).success());
    CHECK(communicators(cluster) == 2);
    proto::CollectiveRequest sum;
    sum.set_comm_id(made.commid());
    sum.mutable_collective()->set_algorithm("ring");
    sum.mutable_collective()->set_count(64);
    for (auto& device : made.devices())
      sum.add_inputs(device.minmemaddr().value());
    REQUIRE(mine.wait_for(mine.ask<proto::CollectiveResponse>(cluster.host, sum)).success());
  }
  cluster.run_until([&] { return communicators(cluster) == 0; });
  CHECK(cluster.init(4).success());
}

TEST_CASE("clients: what was asked to stay outlives one that asked, and what is another's stays") {
  simulated_cluster cluster{{}};
  auto others = cluster.init(1);
  {
    simulated_client mine{cluster};
    REQUIRE(mine.wait_for(mine.ask<gpu_sim::CommInitResponse>(cluster.host, of_ranks(1, true))).success());
    REQUIRE(mine.wait_for(mine.ask<gpu_sim::CommInitResponse>(cluster.host, of_ranks(1))).success());
  }
  cluster.run_until([&] { return communicators(cluster) == 2; });
  run_messages(cluster);
  auto info = info_of(cluster);
  REQUIRE(info.communicators_size() == 2);
  CHECK(info.communicators(0).comm_id() == others.commid());
  CHECK_FALSE(info.communicators(0).outlives_client());
  CHECK(info.communicators(1).outlives_client());
}

TEST_CASE("clients: their memory is freed with them, but for what was asked to stay or is another's by now") {
  simulated_cluster cluster{{}};
  simulated_client other{cluster};
  uint64_t shared = 0;
  {
    simulated_client mine{cluster};
    CHECK(mine.call<proto::AllocateResponse>(1, of_bytes(most_of_memory)).error() == "");
    CHECK(mine.call<proto::AllocateResponse>(2, of_bytes(most_of_memory, true)).error() == "");
    shared = mine.call<proto::AllocateResponse>(3, of_bytes(most_of_memory)).address().value();
    proto::FreeRequest give_back;
    give_back.mutable_address()->set_value(shared);
    CHECK(other.call<proto::FreeResponse>(3, give_back).success());
    CHECK(other.call<proto::AllocateResponse>(3, of_bytes(most_of_memory)).address().value() == shared);
  }
  run_messages(cluster);
  auto full = static_cast<uint32_t>(errc::out_of_memory);
  CHECK(other.call<proto::AllocateResponse>(1, of_bytes(most_of_memory)).error() == "");
  CHECK(other.call<proto::AllocateResponse>(2, of_bytes(most_of_memory)).code() == full);
  CHECK(other.call<proto::AllocateResponse>(3, of_bytes(most_of_memory)).code() == full);
}

TEST_CASE("clients: one that exits before its answer leaves nothing behind") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    simulation_options how;
    how.seed = seed;
    simulated_cluster cluster{how};
    {
      simulated_client mine{cluster};
      gpu_sim::DeviceId first;
      first.set_value(1);
      mine.ask<proto::AllocateResponse>(cluster.host, first, of_bytes(most_of_memory));
      mine.ask<gpu_sim::CommInitResponse>(cluster.host, of_ranks(4));
    }
    simulated_client other{cluster};
    run_messages(cluster);
    cluster.run_until([&] { return communicators(cluster) == 0; });
    run_messages(cluster);
    CHECK_MESSAGE(other.call<proto::AllocateResponse>(1, of_bytes(most_of_memory)).error() == "", "seed ", seed);
  }
}

TEST_CASE("clients: info tells of each communicator how it is, and what is gone and why") {
  simulation_options how;
  how.devices = 5;
  simulated_cluster cluster{how};
  auto first = cluster.init(3);
  auto second = cluster.init(1);
  auto victim = first.devices(1).deviceid().value();
  cluster.inject(victim, proto::FaultRequest{});
  cluster.run_until([&] { return cluster.wait(first.commid()).epoch() > 1; });
  auto info = info_of(cluster);
  REQUIRE(info.communicators_size() == 2);
  auto& shrunk = info.communicators(0);
  CHECK(shrunk.comm_id() == first.commid());
  CHECK(shrunk.policy() == proto::SHRINK);
  CHECK(shrunk.epoch() > 1);
  REQUIRE(shrunk.device_ids_size() == 2);
  CHECK(shrunk.device_ids(0) == first.devices(0).deviceid().value());
  CHECK(shrunk.device_ids(1) == first.devices(2).deviceid().value());
  CHECK(contains(shrunk.async_error(), "rank 1"));
  CHECK(shrunk.operations_in_flight() == 0);
  CHECK(info.communicators(1).epoch() == 1);
  REQUIRE(info.gone_size() == 1);
  CHECK(info.gone(0).what() == proto::ClusterInfo::Gone::DEVICE);
  CHECK(info.gone(0).id() == victim);
  CHECK(info.gone(0).cause() != "");
  CHECK_FALSE(info.gone(0).left());
  REQUIRE(info.gone(0).comm_ids_size() == 1);
  CHECK(info.gone(0).comm_ids(0) == first.commid());

  // One that fails is reported, too.
  auto hung = communicator_of(cluster, second.commid());
  cluster.self->send_exit(hung, caf::exit_reason::kill);
  cluster.run_until([&] { return communicators(cluster) == 1; });
  info = info_of(cluster);
  REQUIRE(info.gone_size() == 2);
  CHECK(info.gone(1).what() == proto::ClusterInfo::Gone::COMMUNICATOR);
  CHECK(info.gone(1).id() == second.commid());
}

TEST_CASE(
  "clients: of two nodes of one name the second is refused, and ends with a sentence; the same one may come again") {
  simulation_options how;
  how.journaled = true;
  how.devices = 0;
  simulated_cluster cluster{how};
  node_options settings;
  settings.name = "node-3";
  settings.hostname = "here";
  settings.pid = 812;
  settings.devices = 1;
  settings.device = cluster.device_settings;
  settings.coordinator = cluster.host;
  auto first = cluster.sys.spawn(node, settings);
  cluster.run_until([&] { return info_of(cluster).devices_size() == 1; });
  settings.pid = 813;
  auto second = cluster.sys.spawn(node, settings);
  cluster.self->monitor(second);
  cluster.run_until([&] { return !cluster.self->mailbox().empty(); });
  cluster.self->receive([&](const caf::down_msg& x) {
    CHECK(x.reason == errc::in_use);
    CHECK(contains(render(x.reason), "the name \"node-3\" is taken: process 812 on here joined with it"));
  });
  CHECK(info_of(cluster).nodes_size() == 1);
  cluster.self->send_exit(first, caf::exit_reason::kill);
  settings.pid = 812; // a supervisor may be faster than word of its end
  auto again = cluster.sys.spawn(node, settings);
  cluster.run_until([&] {
    auto info = info_of(cluster);
    return info.devices_size() == 1 && info.nodes_size() == 1 && info.nodes(0).node_id() == 2;
  });
  cluster.self->send_exit(again, caf::exit_reason::user_shutdown);
  cluster.run_until([&] { return info_of(cluster).nodes_size() == 0; });
}

TEST_CASE("clients: one that is found by a name is so until its end, and is forgotten then") {
  simulated_cluster cluster{{}};
  auto first = deaf(cluster), second = deaf(cluster);
  auto tell = [&](const std::string& name, const caf::actor& who) {
    caf::anon_send(cluster.host, name, caf::actor_cast<caf::strong_actor_ptr>(who));
    run_messages(cluster);
  };
  tell("a", first);
  tell("b", first);
  tell("c", first);
  tell("c", second); // in the first one's place
  CHECK(found_by(cluster, "a") == first);
  CHECK(found_by(cluster, "c") == second);
  CHECK(found_by(cluster, "d") == nullptr);
  cluster.stop(first);
  run_messages(cluster);
  CHECK(found_by(cluster, "a") == nullptr);
  CHECK(found_by(cluster, "c") == second);
  CHECK(state_of<coordinator_state>(cluster.host).clients.published().size() == 1);
  cluster.stop(second);
}

TEST_CASE("clients: one that is found by a name is forgotten in the end, also when it had memory in between") {
  simulated_cluster cluster{{}};
  auto user = [](caf::event_based_actor* self, const coordinator_actor& host) -> caf::behavior {
    gpu_sim::DeviceId id;
    id.set_value(1);
    self->request(host, caf::infinite, id, of_bytes(4096)).then([=](const proto::AllocateResponse& mine) {
      proto::FreeRequest give_back;
      *give_back.mutable_address() = mine.address();
      self->request(host, caf::infinite, id, give_back).then([](const proto::FreeResponse&) {});
    });
    return {[](int) {}};
  };
  auto who = cluster.sys.spawn(user, cluster.host);
  caf::anon_send(cluster.host, std::string{"a"}, caf::actor_cast<caf::strong_actor_ptr>(who));
  run_messages(cluster);
  CHECK(found_by(cluster, "a") == who);
  cluster.stop(who);
  run_messages(cluster);
  CHECK(state_of<coordinator_state>(cluster.host).clients.published().empty());
}
