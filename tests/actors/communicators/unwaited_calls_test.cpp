// Ranks that call far ahead of each other, and clients that send more than they are answered.
#include "client/rank_caller.hpp"
#include "tests/support/actor_state.hpp"
#include "tests/support/rank_cluster.hpp"
#include "tests/support/simulated_client.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

constexpr uint64_t first_in = 0, first_out = 2048; // elements

simulation_options slow_machine(uint64_t seed) {
  simulation_options result;
  result.seed = seed;
  result.relays = 2;
  result.hurry_per_mille = 20; // half a second passes within 1,250 messages
  return result;
}

/// Runs until all have ended, without looking at all of them after each step.
bool all_end(rank_cluster& x, const std::vector<work>& calls) {
  constexpr int steps_max = 2'000'000;
  size_t ended = 0;
  for (int i = 0; i < steps_max && ended < calls.size(); ++i) {
    x.cluster.step();
    while (ended < calls.size() && calls[ended].test())
      ++ended;
  }
  return ended == calls.size();
}

} // namespace

TEST_CASE("unwaited calls: if ranks call 1,500 times ahead of a late one, no rank is lost and every sum is right") {
  constexpr uint64_t calls = 1500; // more than a communicator may have in flight, or a rank's handle
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    CAPTURE(seed);
    rank_cluster x{slow_machine(seed), 4};
    std::vector<work> all;
    auto call_all = [&](uint32_t rank) {
      std::vector<float> inputs(calls);
      for (uint64_t i = 0; i < calls; ++i)
        inputs[i] = static_cast<float>(i * 4 + rank);
      x.fill(rank, first_in, inputs);
      for (uint64_t i = 0; i < calls; ++i)
        all.push_back(x.handles[rank].all_reduce(x.buffers(rank, first_in + i, first_out + i), 1, proto::FLOAT32));
    };
    for (uint32_t rank : {0, 1, 2})
      call_all(rank);
    for (int i = 0; i < 4000; ++i)
      x.cluster.step();
    call_all(3);
    REQUIRE(all_end(x, all));
    for (auto& each : all)
      CHECK_FALSE(each.error());
    CHECK(all.back().epoch() == epoch_number{1});
    for (uint32_t rank : {0, 3}) {
      const auto sums = x.read(rank, first_out, calls);
      for (uint64_t i = 0; i < calls; ++i)
        CHECK(sums[i] == static_cast<float>(4 * (i * 4) + 6));
    }
  }
}

TEST_CASE("unwaited calls: a limit counts from the call, also of one that waits behind others") {
  simulation_options how;
  how.relays = 2;
  rank_cluster x{how, 2};
  std::vector<work> all;
  for (size_t i = 0; i < rank_caller_state::calls_under_way_max + 10; ++i)
    all.push_back(x.handles[0].all_reduce(x.buffers(0, first_in, first_out), 1, proto::FLOAT32, {}, {.timeout = 3s}));
  const auto begun = x.cluster.sys.clock().now();
  REQUIRE(all_end(x, all));
  for (auto& each : all)
    CHECK(contains(render(each.error()), "rank 1 (device 0x2) has not called all_reduce"));
  CHECK(x.cluster.sys.clock().now() - begun < 4s);
  for (size_t i = 0; i < all.size(); ++i) // each of them has kept its place
    CHECK(contains(x.ended({x.handles[1].all_reduce(x.buffers(1, first_in, first_out), 1, proto::FLOAT32)})[0],
                   "has not called"));
  CHECK(x.all_well({x.handles[0].barrier(), x.handles[1].barrier()}));
}

TEST_CASE("unwaited calls: a rank that ignores how many calls it may have is refused the others, and only those") {
  constexpr size_t more = 100;
  rank_cluster x{with_devices(2), 2};
  simulated_client stranger{x.cluster};
  std::vector<answer_ptr<proto::RankCallResponse>> answers;
  for (size_t i = 0; i < rank_call_server::calls_open_max + more; ++i) {
    proto::RankCall call;
    call.set_comm_id(x.comm.commid());
    call.set_device_id(x.device(0));
    call.set_epoch(1);
    call.add_parts()->mutable_collective()->set_kind(proto::BARRIER);
    call.mutable_parts(0)->mutable_collective()->set_algorithm("auto");
    answers.push_back(stranger.ask<proto::RankCallResponse>(x.cluster.host, call));
  }
  x.run_messages();
  for (size_t i = 0; i < answers.size(); ++i)
    CHECK(answers[i]->arrived() == (i >= rank_call_server::calls_open_max));
  auto& refused = answers.back()->get();
  CHECK(refused.code() == static_cast<uint32_t>(errc::too_many));
  CHECK(contains(refused.error(), "4096 calls of device 0x1 on communicator 1 have not been answered yet"));
  CHECK(x.all_well({x.handles[1].barrier()})); // meets the first one
}

TEST_CASE("clients' requests: one that sends thousands delays another one's by its share of the mailbox at most") {
  simulated_cluster cluster{with_devices(2)};
  simulated_client busy{cluster}, modest{cluster};
  std::vector<answer_ptr<proto::ClusterInfo>> many;
  for (int i = 0; i < 10'000; ++i)
    many.push_back(busy.ask<proto::ClusterInfo>(cluster.host, proto::ClusterInfoRequest{}));
  for (int i = 0; i < 100; ++i)
    cluster.step();
  auto one = modest.ask<proto::ClusterInfo>(cluster.host, proto::ClusterInfoRequest{});
  cluster.run_until([&] { return one->arrived(); });
  const auto before = std::count_if(many.begin(), many.end(), [](auto& x) { return x->arrived(); });
  CHECK(before < 2000);
  while (!many.back()->arrived())
    REQUIRE(cluster.step());
  for (auto& each : many)
    CHECK(each->get().devices_size() == 2);
}

TEST_CASE(
  "clients' requests: what is more than may wait is refused at once with its code, and all others are answered") {
  constexpr auto most = *fair_coordinator::limits.actor;
  constexpr size_t more = 50;
  simulated_cluster cluster{with_devices(2)};
  simulated_client busy{cluster};
  std::vector<answer_ptr<proto::ClusterInfo>> many;
  for (size_t i = 0; i < most.in_mailbox + most.waiting_max + more; ++i)
    many.push_back(busy.ask<proto::ClusterInfo>(cluster.host, proto::ClusterInfoRequest{}));
  while (!cluster.scheduler.jobs.empty())
    cluster.step();
  size_t refused = 0;
  for (auto& each : many)
    if (!each->problem.empty()) {
      ++refused;
      CHECK(contains(each->problem, "17408 requests of this client wait at the coordinator already, its limit"));
    } else {
      CHECK(each->get().devices_size() == 2);
    }
  CHECK(refused == more);
}

TEST_CASE("clients' requests: what waits when the coordinator ends is answered, too") {
  simulated_cluster cluster{with_devices(2)};
  simulated_client busy{cluster};
  std::vector<answer_ptr<proto::ClusterInfo>> many;
  for (int i = 0; i < 5000; ++i)
    many.push_back(busy.ask<proto::ClusterInfo>(cluster.host, proto::ClusterInfoRequest{}));
  cluster.self->send_exit(cluster.host, caf::exit_reason::kill);
  while (!cluster.scheduler.jobs.empty())
    cluster.step();
  for (auto& each : many)
    CHECK(each->arrived());
}

TEST_CASE("clients' requests: who has too many that wait for others is refused more of them, and only those") {
  simulated_cluster cluster{with_devices(2)};
  simulated_client busy{cluster}, modest{cluster};
  proto::ClusterInfoRequest many_devices;
  many_devices.set_min_devices(100);
  many_devices.set_timeout_ns(1'000'000'000);
  std::vector<answer_ptr<proto::ClusterInfo>> waiting;
  for (size_t i = 0; i < coordinator_state::waiting_max + 1; ++i)
    waiting.push_back(busy.ask<proto::ClusterInfo>(cluster.host, many_devices));
  proto::RendezvousRequest group;
  group.set_group("job");
  group.set_world_size(2);
  group.set_device_id(1);
  group.set_timeout_ns(1'000'000'000);
  auto one_more = busy.ask<proto::RendezvousResponse>(cluster.host, group);
  auto another = modest.ask<proto::RendezvousResponse>(cluster.host, group);
  while (!cluster.scheduler.jobs.empty())
    cluster.step();
  CHECK(std::count_if(waiting.begin(), waiting.end(), [](auto& x) { return x->arrived(); }) == 1);
  CHECK(contains(waiting.back()->problem, "4096 requests of this client wait for ranks, devices or nodes, its limit"));
  CHECK(one_more->get().code() == static_cast<uint32_t>(errc::too_many));
  CHECK_FALSE(another->arrived());
  cluster.run_until([&] { return waiting.front()->arrived() && another->arrived(); });
  CHECK(waiting.front()->get().devices_size() == 2);
}

TEST_CASE("clients' requests: a message with too many calls is refused") {
  simulated_cluster cluster{with_devices(2)};
  simulated_client busy{cluster};
  auto comm = cluster.init(2);
  proto::CollectiveRequests calls;
  for (int i = 0; i < 1025; ++i)
    calls.add_calls()->set_comm_id(comm.commid());
  auto answer = busy.ask<proto::CollectiveResponses>(cluster.host, calls);
  cluster.run_until([&] { return answer->arrived(); });
  CHECK(answer->get().code() == static_cast<uint32_t>(errc::too_many));
  CHECK(contains(answer->get().error(), "CollectiveRequests has 1025 calls, and may have 1024"));
}
