// Ranks that processes of their own play: they come together at the coordinator, and leave together.
#include "tests/support/actor_state.hpp"
#include "tests/support/simulated_client.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

simulation_options that_meet(proto::FailurePolicy policy = proto::SHRINK) {
  auto result = with_devices(3);
  result.meet_bytes = 1024;
  result.policy = policy;
  return result;
}

struct rank_processes {
  simulated_cluster cluster;
  simulated_client host{cluster};

  explicit rank_processes(const simulation_options& opts = with_devices(3)) : cluster(opts) {}

  /// Where the three of them meet.
  proto::MeetingResponse meet(uint64_t communicator, uint64_t epoch = 1, uint32_t ranks = 3) {
    proto::MeetingRequest x;
    x.set_comm_id(communicator);
    x.set_epoch(epoch);
    x.set_world_size(ranks);
    return cluster.ask_coordinator<proto::MeetingResponse>(x);
  }

  std::string group = "world";

  answer_ptr<proto::RendezvousResponse> come(uint32_t rank, caf::timespan limit = 10s) {
    proto::RendezvousRequest x;
    x.set_group(group);
    x.set_rank(rank);
    x.set_world_size(3);
    x.set_device_id(3 - rank); // in another order than they were made
    x.set_timeout_ns(static_cast<uint64_t>(limit.count()));
    return host.ask<proto::RendezvousResponse>(cluster.host, x);
  }

  answer_ptr<proto::FinalizeResponse> leave(uint32_t rank, caf::timespan limit = 10s) {
    proto::FinalizeRequest x;
    x.set_group("world");
    x.set_rank(rank);
    x.set_timeout_ns(static_cast<uint64_t>(limit.count()));
    return host.ask<proto::FinalizeResponse>(cluster.host, x);
  }

  uint64_t all_come() {
    auto first = come(0), second = come(1);
    auto made = host.wait_for(come(2));
    REQUIRE(made.error() == "");
    CHECK(host.wait_for(first).comm_id() == made.comm_id());
    CHECK(host.wait_for(second).comm_id() == made.comm_id());
    return made.comm_id();
  }

  size_t communicators() { return state_of<coordinator_state>(cluster.host).communicators.alive().size(); }
};

} // namespace

TEST_CASE("ranks: the last to come makes the communicator, in the order of ranks, which is no one's") {
  rank_processes x;
  auto id = x.all_come();
  gpu_sim::GetCommStatusRequest request;
  request.set_commid(id);
  auto status = x.cluster.ask_coordinator<gpu_sim::GetCommStatusResponse>(request);
  REQUIRE(status.devices_size() == 3);
  for (int rank = 0; rank < 3; ++rank)
    CHECK(status.devices(rank).deviceid().value() == static_cast<uint64_t>(3 - rank));
}

TEST_CASE("ranks: who does not come is named when the limit passes") {
  rank_processes x;
  auto first = x.come(0, 500ms), third = x.come(2, 1h);
  CHECK(x.host.wait_for(first).error() == "rank 1 of 3 of \"world\" did not come within 500 ms");
  CHECK(x.host.wait_for(third).error() == first->get().error());
  CHECK(first->get().code() == static_cast<uint32_t>(errc::timed_out));
  x.all_come();
}

TEST_CASE("ranks: one whose device dies before all have come ends the waiting of the others") {
  rank_processes x;
  auto first = x.come(0), second = x.come(1);
  x.cluster.inject(2, fault(proto::FaultRequest::KILL));
  CHECK(contains(x.host.wait_for(first).error(), "rank 1 of 3 of \"world\" (device 0x2) was lost before all had come"));
  CHECK(x.host.wait_for(second).error() == first->get().error());
}

TEST_CASE("ranks: a device that is not there is an error of all") {
  rank_processes x;
  proto::RendezvousRequest alone;
  alone.set_world_size(1);
  alone.set_device_id(99);
  CHECK(x.host.wait_for(x.host.ask<proto::RendezvousResponse>(x.cluster.host, alone)).error()
        == "there is no device 0x63; the cluster has 3 devices");
}

TEST_CASE("ranks: they leave together, and the communicator ends before they do") {
  rank_processes x;
  x.all_come();
  auto first = x.leave(0), second = x.leave(1);
  CHECK(x.communicators() == 1);
  CHECK(x.host.wait_for(x.leave(2)).success());
  CHECK(x.communicators() == 0);
  CHECK(x.host.wait_for(first).success());
  CHECK(x.host.wait_for(second).success());
  x.all_come(); // the name is free
}

TEST_CASE("ranks: no one waits for a lost one, and who works too long is named") {
  rank_processes x;
  x.all_come();
  auto first = x.leave(0, 2s);
  CHECK(x.host.wait_for(first).error() == "ranks 1, 2 of 3 of \"world\" had not left after 2 s");
  auto again = x.leave(0), third = x.leave(2);
  x.cluster.inject(2, fault(proto::FaultRequest::KILL)); // rank 1's
  CHECK(x.host.wait_for(again).success());
  CHECK(x.host.wait_for(third).success());
}

TEST_CASE("ranks: all are given one page, until something else happens on their devices") {
  rank_processes x{that_meet()};
  auto id = x.all_come();
  auto page = x.meet(id);
  REQUIRE(page.error() == "");
  CHECK(page.slot_bytes() == 1024);
  CHECK(x.meet(id).file() == page.file());
  REQUIRE(std::filesystem::exists(page.file()));
  SUBCASE("a client's collective") {
    proto::CollectiveRequest request;
    request.set_comm_id(id);
    request.mutable_collective()->set_kind(proto::BARRIER);
    request.mutable_collective()->set_algorithm("auto");
    x.cluster.ask_coordinator<proto::CollectiveResponse>(request);
  }
  SUBCASE("an abort") {
    proto::CommAbortRequest request;
    request.set_comm_id(id);
    x.cluster.ask_coordinator<proto::CommAbortResponse>(request);
  }
  SUBCASE("a fault") {
    x.cluster.inject(2, fault(proto::FaultRequest::SLOW, std::nullopt, 1ms));
  }
  SUBCASE("a death") {
    x.cluster.inject(2, fault(proto::FaultRequest::KILL));
    x.cluster.run_until([&] {
      return state_of<coordinator_state>(x.cluster.host).devices.find(device_id{2}) == nullptr;
    });
    CHECK(x.meet(id, 2, 2).error() == ""); // the others have another one
  }
  SUBCASE("they leave") {
    x.leave(0);
    x.leave(1);
    x.host.wait_for(x.leave(2));
  }
  CHECK(!std::filesystem::exists(page.file()));
  CHECK(x.meet(id).error() != "");
}

TEST_CASE("ranks: they do not meet where it is not wanted, nor where a spare may take a place") {
  rank_processes never;
  CHECK(
    never.meet(never.all_come()).error()
    == "the ranks of communicator 1 have no shared-memory mailbox: ranks.meet-bytes is 0, or route.use \"messages\"");
  rank_processes replaced{that_meet(proto::REPLACE)};
  auto id = replaced.all_come();
  CHECK(
    replaced.meet(id).error()
    == "the ranks of communicator 1 have no shared-memory mailbox: its policy is \"replace\", and the coordinator must "
       "know what a spare is to get");
  CHECK(replaced.meet(id + 1).code() == static_cast<uint32_t>(errc::unknown_communicator));
}

TEST_CASE("ranks: a launcher's job may have any name, of which their communicator's has the beginning") {
  rank_processes x;
  x.group = "world of " + std::string(100, 'j') + "\n";
  const auto id = x.all_come();
  const auto& known = state_of<coordinator_state>(x.cluster.host).communicators.alive().at(communicator_id{id});
  CHECK(known.name == "world of " + std::string(55, 'j'));
}
