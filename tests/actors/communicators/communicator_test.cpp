#include "actors/communicators/communicator.hpp"

#include "tests/support/actor_state.hpp"
#include "tests/support/simulated_client.hpp"
#include "tests/support/trials/all_reduce_trial.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

trial_options on_ranks(uint32_t ranks, uint64_t count = 10) {
  trial_options result;
  result.ranks = ranks;
  result.count = count;
  return result;
}

proto::CommDestroyResponse destroy(simulated_client& host, uint64_t id) {
  proto::CommDestroyRequest request;
  request.set_comm_id(id);
  return host.wait_for(host.ask<proto::CommDestroyResponse>(host.cluster.host, request));
}

gpu_sim::GetCommStatusResponse status(simulated_client& host, uint64_t id) {
  gpu_sim::GetCommStatusRequest request;
  request.set_commid(id);
  return host.wait_for(host.ask<gpu_sim::GetCommStatusResponse>(host.cluster.host, request));
}

} // namespace

TEST_CASE("communicator: every datatype and reduction, each algorithm, in place and not, on one rank to five") {
  uint64_t seed = 0;
  for (uint32_t ranks = 1; ranks <= 5; ++ranks)
    for (auto algorithm : {"ring", "naive"})
      for (bool in_place : {true, false})
        for (auto type : {proto::FLOAT64, proto::FLOAT32, proto::INT32, proto::INT64})
          for (auto op : {gpu_sim::SUM, gpu_sim::PROD, gpu_sim::MIN, gpu_sim::MAX, gpu_sim::AVG}) {
            CAPTURE(ranks);
            CAPTURE(algorithm);
            CAPTURE(in_place);
            CAPTURE(type);
            CAPTURE(op);
            auto how = with_devices(ranks);
            how.seed = ++seed;
            how.offer_memory = seed % 2 == 0;
            simulated_cluster cluster{how};
            trial_options what{algorithm, ranks, 7, type, op, in_place};
            all_reduce_trial trial{cluster, what};
            REQUIRE(trial.launch() == "");
            CHECK(cluster.wait(trial.comm.commid()).error() == "");
            CHECK(trial.judge(trial.ranks_but({}), trial.ranks_but({})) == "");
          }
}

TEST_CASE(
  "communicator: between processes data is cut for their network, within one it is not, and a requested cut is kept") {
  for (bool one_process : {true, false}) {
    CAPTURE(one_process);
    auto how = with_devices(8);
    how.share_memory = one_process;
    how.memory_bytes = 1u << 20;
    simulated_cluster cluster{how};
    all_reduce_trial trial{cluster, on_ranks(8)};
    REQUIRE(trial.launch() == "");
    auto cut = [&](const char* algorithm, uint64_t told) {
      proto::CollectiveRequest request;
      auto& what = *request.mutable_collective();
      what.set_kind(proto::ALL_REDUCE);
      what.set_algorithm(algorithm);
      what.set_datatype(proto::FLOAT32);
      what.set_count(1u << 18); // 1 MiB
      what.set_chunk_count(told);
      for (auto& device : trial.comm.devices())
        request.add_inputs(device.minmemaddr().value());
      auto op = state_of<communicator_state>(communicator_of(cluster)).runner().operation_for(request, {});
      REQUIRE_MESSAGE(op, (op ? "" : render(op.error())));
      return op->what().chunk_count();
    };
    CHECK(cut("chain", 0) == (one_process ? 0 : 1u << 16)); // of 5 us and 50 GB/s
    CHECK(cut("ring", 0) == 0);
    CHECK(cut("chain", 1000) == 1000);
  }
}

TEST_CASE("communicator: a later call comes to the streams after an operation, also through relays") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    auto how = with_devices(4, seed);
    how.relays = static_cast<uint32_t>(seed % 3);
    simulated_cluster cluster{how};
    auto what = on_ranks(4);
    what.algorithm = seed % 2 == 0 ? "direct" : "ring";
    all_reduce_trial trial{cluster, what};
    REQUIRE(trial.launch() == ""); // answered; no client waits for its end
    CHECK(trial.judge(trial.ranks_but({}), trial.ranks_but({})) == "");
  }
}

TEST_CASE("communicator: no elements are reduced at once, and touch nothing") {
  for (uint32_t ranks : {1, 3}) {
    simulated_cluster cluster{{}};
    all_reduce_trial trial{cluster, on_ranks(ranks, 0)};
    REQUIRE(trial.launch() == "");
    CHECK(cluster.wait(trial.comm.commid()).status() == gpu_sim::SUCCESS);
    CHECK(trial.judge(trial.ranks_but({}), trial.ranks_but({})) == "");
  }
}

TEST_CASE("communicator: several at once have devices of their own; too many asked for is an error with both numbers") {
  simulated_cluster cluster{with_devices(6)};
  all_reduce_trial first{cluster, on_ranks(2)}, second{cluster, on_ranks(3)};
  CHECK(first.comm.commid() != second.comm.commid());
  auto refused = cluster.init(2).error();
  CHECK(contains(refused, "asks for 2 devices, but 1 are free: the cluster has 6, 5 of them in communicators"));
  CHECK(contains(cluster.init(0).error(), "asks for 0 devices"));
  REQUIRE(first.launch() == "");
  REQUIRE(second.launch() == "");
  CHECK(cluster.wait(first.comm.commid()).error() == "");
  CHECK(cluster.wait(second.comm.commid()).error() == "");
  CHECK(first.judge({0, 1}, {0, 1}) == "");
  CHECK(second.judge({0, 1, 2}, {0, 1, 2}) == "");
  gpu_sim::CommInitRequest unknown_policy;
  unknown_policy.set_numdevices(1);
  unknown_policy.set_policy(static_cast<proto::FailurePolicy>(7));
  CHECK(contains(cluster.ask_coordinator<gpu_sim::CommInitResponse>(unknown_policy).error(), "failure policy 7"));
}

TEST_CASE("communicator: after its end its memory is freed, although devices and coordinator live on") {
  simulated_cluster cluster{with_devices(3)};
  simulated_client host{cluster};
  caf::actor_addr first;
  for (int i = 0; i < 2; ++i) { // streams keep their latest command
    all_reduce_trial trial{cluster, on_ranks(3)};
    if (!first)
      first = communicator_of(cluster).address();
    REQUIRE(trial.launch() == "");
    CHECK(cluster.wait(trial.comm.commid()).error() == "");
    CHECK(destroy(host, trial.comm.commid()).error() == "");
    for (int left = 3000; left > 0 && cluster.step(); --left)
      ;
  }
  CHECK(first.get()->strong_refs == 0);
  CHECK(first.get()->weak_refs == 1); // ours
}

TEST_CASE("communicator: destroyed, its devices are free in the answer's moment, and it is unknown") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    auto how = with_devices(3);
    how.seed = seed;
    simulated_cluster cluster{how};
    simulated_client host{cluster};
    all_reduce_trial trial{cluster, on_ranks(3, 100)};
    auto id = trial.comm.commid();
    if (seed % 2 == 0)
      REQUIRE(trial.launch() == "");
    CHECK(destroy(host, id).error() == "");
    CHECK(status(host, id).error() == "communicator 1 has been destroyed");
    CHECK(destroy(host, id).error() == "communicator 1 has been destroyed");
    CHECK(contains(status(host, 77).error(), "there is no communicator 77"));
    all_reduce_trial next{cluster, on_ranks(3)};
    REQUIRE(next.launch() == "");
    CHECK(cluster.wait(next.comm.commid()).error() == "");
    CHECK(next.judge({0, 1, 2}, {0, 1, 2}) == "");
  }
}

TEST_CASE("communicator: a wait that ends at its limit says which rank does what, and for ever is no limit") {
  simulated_cluster cluster{with_devices(3)};
  simulated_client host{cluster};
  all_reduce_trial trial{cluster, on_ranks(3)};
  REQUIRE(host
            .begin_receive(trial.device(1), 99, trial.input_address(1) - 64, 1, 0, host.default_stream(trial.device(1)))
            .error()
          == "");
  REQUIRE(trial.launch() == "");
  proto::CommWaitRequest wait;
  wait.set_comm_id(trial.comm.commid());
  wait.set_timeout_ns(1000 * 1000 * 1000);
  auto late = host.wait_for(host.ask<gpu_sim::GetCommStatusResponse>(cluster.host, wait));
  CHECK(late.status() == gpu_sim::IN_PROGRESS);
  CHECK(contains(late.error(), "waited 1.0 s: 1 operation in flight on communicator 1, epoch 1; first is #1: rank 0"));
  CHECK(contains(late.error(), "rank 1 (device 0x2) busy with a receive"));
  CHECK(contains(late.error(), "waiting for rank"));
  wait.set_timeout_ns(UINT64_MAX);
  CHECK(host.wait_for(host.ask<gpu_sim::GetCommStatusResponse>(cluster.host, wait)).status() == gpu_sim::SUCCESS);
  CHECK(trial.judge({0, 1, 2}, {0, 1, 2}) == "");
}

TEST_CASE("communicator: no scratch on one rank fails the operation on all, names the rank, and the next one works") {
  simulated_cluster cluster{with_devices(3)};
  all_reduce_trial trial{cluster, on_ranks(3)};
  auto& memory = *state_of<device_state>(device_of(cluster, trial.device(1))).memory;
  auto hoard = memory.allocate_scratch(1u << 16);
  REQUIRE(hoard);
  REQUIRE(trial.launch() == "");
  auto failed = cluster.wait(trial.comm.commid());
  CHECK(failed.status() == gpu_sim::FAILED);
  CHECK(contains(failed.error(), "rank 1 (device 0x2) failed: device 0x2, scratch"));
  for (uint32_t rank = 0; rank < 3; ++rank)
    CHECK(trial.input_intact(rank));
  REQUIRE_FALSE(memory.free_scratch(*hoard));
  REQUIRE(trial.launch() == "");
  CHECK(cluster.wait(trial.comm.commid()).error() == "");
  CHECK(trial.judge({0, 1, 2}, {0, 1, 2}) == "");
  for (auto& device : cluster.devices)
    CHECK(state_of<device_state>(device).memory->scratch_used() == 0);
}

TEST_CASE("communicator: a client that waits hears of a failure, although later operations have succeeded") {
  simulated_cluster cluster{with_devices(3)};
  all_reduce_trial trial{cluster, on_ranks(3)};
  auto& comm = state_of<communicator_state>(communicator_of(cluster));
  auto& memory = *state_of<device_state>(device_of(cluster, trial.device(1))).memory;
  auto hoard = memory.allocate_scratch(1u << 16);
  REQUIRE(hoard);
  auto run = [&] {
    REQUIRE(trial.launch() == "");
    cluster.run_until([&] { return comm.reporter().whole_status().status() != gpu_sim::IN_PROGRESS; });
  };
  run();
  REQUIRE_FALSE(memory.free_scratch(*hoard));
  run();
  // A read-only status does not count as having heard of the end.
  CHECK(comm.reporter().whole_status().status() == gpu_sim::FAILED);
  proto::ClusterInfoRequest info;
  info.set_communicators(true);
  CHECK(cluster.ask_coordinator<proto::ClusterInfo>(info).communicators(0).status() == gpu_sim::FAILED);
  gpu_sim::GetCommStatusRequest members;
  members.set_commid(1);
  members.set_readonly(true);
  CHECK(cluster.ask_coordinator<gpu_sim::GetCommStatusResponse>(members).status() == gpu_sim::FAILED);
  run();
  auto told = cluster.wait(1);
  CHECK(told.status() == gpu_sim::FAILED);
  CHECK(contains(told.error(), "rank 1 (device 0x2) failed: device 0x2, scratch"));
  run();
  CHECK(cluster.wait(1).status() == gpu_sim::SUCCESS);
}

TEST_CASE(
  "communicator: after an abort what was in flight has failed, inputs are as they were, and calls are refused") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    auto how = with_devices(3);
    how.seed = seed;
    simulated_cluster cluster{how};
    simulated_client host{cluster};
    all_reduce_trial trial{cluster, on_ranks(3, 200)};
    proto::CommAbortRequest abort;
    abort.set_comm_id(trial.comm.commid());
    abort.set_reason("the test says so");
    REQUIRE(trial.launch() == "");
    CHECK(host.wait_for(host.ask<proto::CommAbortResponse>(cluster.host, abort)).success());
    auto ended = cluster.wait(trial.comm.commid());
    CHECK(contains(ended.asyncerror(), "communicator 1 has ended: aborted by a client: the test says so"));
    if (ended.status() == gpu_sim::FAILED)
      for (uint32_t rank = 0; rank < 3; ++rank)
        CHECK(trial.input_intact(rank));
    CHECK(contains(trial.launch(), "the test says so"));
    CHECK(destroy(host, trial.comm.commid()).success());
  }
}

TEST_CASE("communicator: ends although a member hangs or dies while it ends") {
  for (auto kind : {proto::FaultRequest::HANG, proto::FaultRequest::KILL})
    for (bool all : {false, true}) {
      simulated_cluster cluster{with_devices(3)};
      simulated_client host{cluster};
      all_reduce_trial trial{cluster, on_ranks(3, 100)};
      proto::FaultRequest fault;
      fault.set_kind(kind);
      REQUIRE(trial.launch() == "");
      for (uint32_t rank = all ? 0 : 2; rank < 3; ++rank)
        caf::anon_send(cluster.devices[rank], fault);
      for (auto& device : cluster.devices)
        while (cluster.scheduler.prioritize(device)) // the faults strike before the communicator ends
          cluster.scheduler.run_once();
      auto began = time_of(cluster);
      CHECK(destroy(host, trial.comm.commid()).error() == "");
      CHECK(time_of(cluster) - began < (all ? 8s : 3s)); // most of them late: it might be the host's load
      CHECK(contains(status(host, 1).error(), "has been destroyed"));
    }
}

TEST_CASE("communicator: where it fails itself its devices are free and their streams go on") {
  simulated_cluster cluster{with_devices(3)};
  simulated_client host{cluster};
  all_reduce_trial trial{cluster, on_ranks(3, 100)};
  REQUIRE(trial.launch() == "");
  cluster.self->send_exit(communicator_of(cluster), make_error(errc::corrupt, "for the test"));
  CHECK(contains(cluster.wait(1).error(), "communicator 1 has"));
  all_reduce_trial next{cluster, on_ranks(3)};
  REQUIRE(next.launch() == "");
  CHECK(cluster.wait(next.comm.commid()).error() == "");
  CHECK(next.judge({0, 1, 2}, {0, 1, 2}) == "");
}
