#include "tests/support/simulated_client.hpp"
#include "tests/support/trials/all_reduce_trial.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

std::string start(simulated_cluster& cluster, uint64_t id) {
  gpu_sim::GroupStartRequest request;
  request.set_commid(id);
  return cluster.ask_coordinator<gpu_sim::GroupStartResponse>(request).error();
}

std::string end(simulated_cluster& cluster, uint64_t id) {
  gpu_sim::GroupEndRequest request;
  request.set_commid(id);
  return cluster.ask_coordinator<gpu_sim::GroupEndResponse>(request).error();
}

gpu_sim::GetCommStatusResponse status(simulated_cluster& cluster, uint64_t id) {
  gpu_sim::GetCommStatusRequest request;
  request.set_commid(id);
  return cluster.ask_coordinator<gpu_sim::GetCommStatusResponse>(request);
}

/// A valid all-reduce of the trial's inputs.
proto::CollectiveRequest request_of(const all_reduce_trial& trial, bool in_place = true) {
  proto::CollectiveRequest request;
  request.set_comm_id(trial.comm.commid());
  request.mutable_collective()->set_algorithm("ring");
  request.mutable_collective()->set_count(trial.options.count);
  for (uint32_t rank = 0; rank < trial.options.ranks; ++rank) {
    request.add_inputs(trial.input_address(rank));
    if (!in_place)
      request.add_outputs(trial.input_address(rank) + 512);
  }
  return request;
}

std::string call(simulated_cluster& cluster, const proto::CollectiveRequest& request) {
  return cluster.ask_coordinator<proto::CollectiveResponse>(request).error();
}

void run_everything(simulated_cluster& cluster) {
  while (!cluster.scheduler.jobs.empty())
    cluster.step();
}

} // namespace

TEST_CASE("group: its calls wait for GroupEnd and then run in order") {
  simulated_cluster cluster{{}};
  all_reduce_trial trial{cluster, {}};
  auto id = trial.comm.commid();
  CHECK(start(cluster, id) == "");
  REQUIRE(trial.launch() == "");
  run_everything(cluster);
  CHECK(status(cluster, id).status() == gpu_sim::IN_PROGRESS);
  CHECK(trial.input_intact(0));
  CHECK(end(cluster, id) == "");
  CHECK(cluster.wait(id).error() == "");
  CHECK(trial.judge(trial.ranks_but({}), trial.ranks_but({})) == "");
}

TEST_CASE("group: does not nest, does not end without a start, and may be empty") {
  simulated_cluster cluster{{}};
  all_reduce_trial trial{cluster, {}};
  auto id = trial.comm.commid();
  CHECK(contains(end(cluster, id), "GroupEnd on communicator 1 without GroupStart"));
  CHECK(start(cluster, id) == "");
  CHECK(contains(start(cluster, id), "groups do not nest"));
  CHECK(end(cluster, id) == "");
  CHECK(status(cluster, id).status() == gpu_sim::SUCCESS);
  CHECK(contains(start(cluster, 9), "there is no communicator 9"));
}

TEST_CASE("group: a wait for a group that is not ended says so") {
  simulated_cluster cluster{{}};
  all_reduce_trial trial{cluster, {}};
  CHECK(start(cluster, 1) == "");
  REQUIRE(trial.launch() == "");
  CHECK(contains(cluster.wait(1).error(), "1 calls wait for GroupEnd on communicator 1"));
}

TEST_CASE("group: one that starts after a long rest has all its time") {
  simulated_cluster cluster{{}};
  simulated_client host{cluster};
  all_reduce_trial trial{cluster, {}};
  REQUIRE(trial.launch() == "");
  CHECK(cluster.wait(1).error() == "");
  cluster.scheduler.advance_time(60s);
  run_everything(cluster);
  // Rank 1's stream is busy for a while: no rank reports anything before the first look.
  auto device = trial.device(1);
  REQUIRE(host.begin_receive(device, 99, trial.input_address(1) - 64, 1, 0, host.default_stream(device)).error() == "");
  CHECK(start(cluster, 1) == "");
  CHECK(call(cluster, request_of(trial)) == "");
  CHECK(end(cluster, 1) == "");
  CHECK(cluster.wait(1).error() == "");
}

TEST_CASE("group: a member that dies before GroupEnd takes no part") {
  simulated_cluster cluster{{}};
  all_reduce_trial trial{cluster, {}};
  CHECK(start(cluster, 1) == "");
  REQUIRE(trial.launch() == "");
  cluster.inject(trial.device(2), proto::FaultRequest{});
  cluster.run_until([&] { return status(cluster, 1).epoch() == 2; });
  CHECK(end(cluster, 1) == "");
  CHECK(cluster.wait(1).error() == "");
  CHECK(trial.judge({0, 1, 3}, {0, 1, 3}) == "");
}

TEST_CASE("group: what makes no sense is refused with the values, and leaves nothing behind") {
  simulated_cluster cluster{{}};
  all_reduce_trial trial{cluster, {}};
  auto good = request_of(trial);
  auto check = [&](const char* text, auto change) {
    auto bad = good;
    change(bad);
    auto error = call(cluster, bad);
    CAPTURE(error);
    CHECK(contains(error, text));
  };
  check("no input address for rank 2", [](auto& x) { x.set_inputs(2, 0); });
  check("5 input addresses for a communicator of 4 ranks", [](auto& x) { x.add_inputs(1); });
  check("no output address for rank 0, 2, 3", [](auto& x) { x.add_outputs(0), x.add_outputs(1); });
  check("rank 1: the input of 80 bytes at 0x",
        [&](auto& x) { x.set_inputs(1, trial.comm.devices(1).maxmemaddr().value() - 79); });
  check("is not within the memory of device 0x2", [&](auto& x) { x.set_inputs(1, trial.input_address(0)); });
  check("rank 3: input at", [&](auto& x) {
    x = request_of(trial, false);
    x.set_outputs(3, trial.input_address(3) + 79);
  });
  check("ring", [](auto& x) { x.mutable_collective()->set_algorithm("rong"); });
  check("naive", [](auto& x) { x.mutable_collective()->set_algorithm(""); });
  check("datatype 99", [](auto& x) { x.mutable_collective()->set_datatype(static_cast<proto::DataType>(99)); });
  check("reduction op 77", [](auto& x) { x.mutable_collective()->set_op(static_cast<gpu_sim::ReduceOp>(77)); });
  check("is more bytes than an address can count", [](auto& x) { x.mutable_collective()->set_count(UINT64_MAX / 4); });
  check("is not within the memory", [](auto& x) { x.mutable_collective()->set_count(UINT64_MAX / 32); });
  check("there is no communicator 5", [](auto& x) { x.set_comm_id(5); });
  {
    auto bad = good;
    bad.mutable_collective()->set_kind(static_cast<proto::CollectiveKind>(44));
    CHECK(call(cluster, bad) != "");
  }
  CHECK(status(cluster, 1).status() == gpu_sim::SUCCESS);
  auto answer = cluster.ask_coordinator<proto::CollectiveResponse>(good);
  CHECK(answer.error() == "");
  CHECK(answer.sequence() == 1);
  CHECK(cluster.wait(1).error() == "");
  CHECK(cluster.ask_coordinator<proto::CollectiveResponse>(good).sequence() == 2);
  CHECK(cluster.wait(1).error() == "");
}

TEST_CASE("group: two in-place operations that each fill the memory find room for their shadows one after the other") {
  simulated_cluster cluster{{}};
  simulated_client host{cluster};
  auto comm = cluster.init(2);
  proto::CollectiveRequest request;
  request.set_comm_id(comm.commid());
  request.mutable_collective()->set_algorithm("ring");
  request.mutable_collective()->set_count(cluster.options.memory_bytes / sizeof(double));
  for (int rank = 0; rank < 2; ++rank)
    request.add_inputs(comm.devices(rank).minmemaddr().value());
  for (int i = 0; i < 2; ++i)
    CHECK(cluster.ask_coordinator<proto::CollectiveResponse>(request).error() == "");
  CHECK(cluster.wait(comm.commid()).error() == "");
}
