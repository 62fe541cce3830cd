// No one waits for ever on an actor that died alone, or that hangs.
#include "tests/support/actor_state.hpp"
#include "tests/support/rank_cluster.hpp"
#include "tests/support/trials/all_reduce_trial.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

bool is(uint32_t code, errc expected) {
  return code == static_cast<uint32_t>(expected);
}

proto::CommWaitRequest wait_for(uint64_t communicator, caf::timespan limit) {
  proto::CommWaitRequest request;
  request.set_comm_id(communicator);
  request.set_timeout_ns(static_cast<uint64_t>(limit.count()));
  return request;
}

proto::FaultRequest hang_up() {
  proto::FaultRequest result;
  result.set_kind(proto::FaultRequest::HANG);
  return result;
}

proto::AllocateRequest some_bytes() {
  proto::AllocateRequest result;
  result.set_bytes(64);
  return result;
}

/// How an actor has ended; none: it has not.
template <class Handle>
std::shared_ptr<std::optional<caf::error>> watched(const Handle& handle) {
  auto result = std::make_shared<std::optional<caf::error>>();
  caf::actor_cast<caf::actor>(handle)->attach_functor([result](const caf::error& reason) { *result = reason; });
  return result;
}

} // namespace

TEST_CASE("limits: a communicator that dies alone ends its ranks' calls with its reason") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    simulation_options how;
    how.seed = seed;
    rank_cluster x{how, 4};
    std::vector<work> calls;
    for (uint32_t rank = 0; rank < 3; ++rank) // the fourth never calls
      calls.push_back(x.handles[rank].barrier());
    x.run_messages(seed * 3);
    auto began = time_of(x.cluster);
    x.cluster.self->send_exit(communicator_of(x.cluster, x.comm.commid()), caf::exit_reason::kill);
    for (auto& error : x.ended(calls))
      CHECK(contains(error, "it was killed"));
    CHECK(time_of(x.cluster) - began < 1s);
    auto later = x.handles[3].barrier();
    CHECK(contains(x.ended({later})[0], "communicator 1 has failed"));
  }
}

TEST_CASE("limits: a communicator that dies alone is answered for at once") {
  simulated_cluster cluster{{}};
  simulated_client host{cluster};
  auto comm = cluster.init(4);
  gpu_sim::GroupStartRequest start;
  start.set_commid(comm.commid());
  REQUIRE(cluster.ask_coordinator<gpu_sim::GroupStartResponse>(start).success());
  proto::CollectiveRequest barrier; // waits for the group's end, and the client for that
  barrier.set_comm_id(comm.commid());
  barrier.mutable_collective()->set_kind(proto::BARRIER);
  barrier.mutable_collective()->set_algorithm("dissemination");
  REQUIRE(cluster.ask_coordinator<proto::CollectiveResponse>(barrier).error() == "");
  auto waiting = host.ask<gpu_sim::GetCommStatusResponse>(cluster.host, wait_for(comm.commid(), 3600s));
  while (!cluster.scheduler.jobs.empty())
    cluster.step();
  CHECK_FALSE(waiting->arrived());
  auto began = time_of(cluster);
  cluster.self->send_exit(communicator_of(cluster, comm.commid()), caf::exit_reason::kill);
  auto answer = host.wait_for(waiting);
  CHECK(time_of(cluster) - began < 1s);
  CHECK(contains(answer.error(), "communicator 1 has failed: it was killed"));
  CHECK(is(answer.code(), errc::unknown_communicator));
}

TEST_CASE("limits: a device that hangs while it is asked is answered for, with what was waited for") {
  simulated_cluster cluster{{}};
  simulated_client host{cluster};
  caf::anon_send(device_of(cluster, 2), hang_up());
  auto answer = host.call<proto::AllocateResponse>(2, some_bytes());
  CHECK(answer.error() == "device 0x2 did not answer within 10.0 s");
  CHECK(is(answer.code(), errc::timed_out));
  auto asked = host.begin<proto::AllocateResponse>(2, some_bytes());
  while (!cluster.scheduler.jobs.empty()) // no time passes: its limit would be next
    cluster.step();
  CHECK_FALSE(asked->arrived());
  cluster.self->send_exit(device_of(cluster, 2), caf::exit_reason::kill);
  answer = host.wait_for(asked);
  CHECK(contains(answer.error(), "device 0x2 died while it was asked"));
  CHECK(is(answer.code(), errc::device_lost));
}

TEST_CASE("limits: a journal that has died alone is answered for") {
  simulation_options how;
  how.journaled = true;
  simulated_cluster cluster{how};
  cluster.self->send_exit(cluster.journal_handle, caf::exit_reason::kill);
  auto flushed = cluster.ask_coordinator<proto::JournalFlushResponse>(proto::JournalFlushRequest{});
  CHECK(contains(flushed.error(), "the journal"));
  CHECK(is(flushed.code(), errc::io_error));
  auto latest = cluster.ask_coordinator<proto::JournalTailResponse>(proto::JournalTailRequest{});
  CHECK(is(latest.code(), errc::io_error));
}

TEST_CASE("limits: a rank's call ends though no one ever answers it") {
  simulated_cluster cluster{{}};
  auto silent = deaf(cluster);
  gpu_sim::GetCommStatusResponse members;
  members.set_epoch(1);
  members.add_devices();
  rank_communicator rank{cluster.sys, caf::actor_cast<coordinator_actor>(silent), communicator_id{1}, members, 0};
  auto limited = rank.barrier({.timeout = 3s});
  auto unlimited = rank.barrier();
  cluster.run_until([&] { return limited.test(); });
  CHECK(limited.error() == errc::timed_out);
  CHECK(render(limited.error()) == "the communicator did not answer within 123 s");
  CHECK_FALSE(unlimited.test());
  cluster.self->send_exit(silent, caf::exit_reason::kill);
  cluster.run_until([&] { return unlimited.test(); });
  CHECK(unlimited.error() == errc::device_lost);
  CHECK(contains(render(unlimited.error()), "the coordinator is gone"));
}

TEST_CASE("limits: a node and a device whose coordinator never answers end, and say so") {
  simulated_cluster cluster{{}};
  auto silent = caf::actor_cast<coordinator_actor>(deaf(cluster));
  node_options about;
  about.name = "node-3";
  about.devices = 1;
  about.device = cluster.device_settings;
  about.coordinator = silent;
  auto lonely_node = cluster.sys.spawn(node, about);
  auto alone = cluster.device_settings;
  alone.coordinator = silent;
  auto lonely_device = cluster.sys.spawn(device, alone);
  auto node_end = watched(lonely_node), device_end = watched(lonely_device);
  cluster.run_until([&] { return *node_end && *device_end; });
  CHECK(**node_end == errc::timed_out);
  CHECK(contains(render(**node_end), "did not let node node-3 join within 5.0 s"));
  CHECK(**device_end == errc::timed_out);
  caf::anon_send_exit(caf::actor_cast<caf::actor>(silent), caf::exit_reason::kill);
}

// Guards the fence: a device that is believed dead must not go on.
TEST_CASE("limits: a device that hangs in an operation is ended, not only taken off the list") {
  for (bool whole_device : {true, false}) {
    CAPTURE(whole_device);
    simulated_cluster cluster{{}};
    trial_options what;
    what.ranks = 4;
    what.count = 13;
    all_reduce_trial trial{cluster, what};
    auto victim = device_of(cluster, trial.device(2));
    auto end = watched(victim);
    auto fault = hang_up();
    fault.set_at_step(!whole_device);
    fault.set_step(1);
    cluster.inject(trial.device(2), fault);
    REQUIRE(trial.launch() == "");
    auto status = cluster.wait(trial.comm.commid());
    CHECK(status.devices_size() == 3);
    while (!cluster.scheduler.jobs.empty())
      cluster.step();
    REQUIRE(*end);
    CHECK(**end == errc::suspected);
    CHECK(contains(render(**end), "ended on suspicion"));
  }
}
