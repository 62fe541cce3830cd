// A node ends without losing anything: its ranks leave when what runs has ended.
#include "actors/calls/answers.hpp"
#include "tests/support/nodes/leaving_node.hpp"
#include "tests/support/trials/all_reduce_trial.hpp"

#include <fmt/format.h>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

simulation_options three_devices(proto::FailurePolicy policy, uint64_t seed) {
  auto result = with_devices(3, seed);
  result.policy = policy;
  return result;
}

/// Three devices, and the node "leaver" with device 0x4: rank 3 of the all-reduce.
struct drained_cluster {
  simulated_cluster cluster;
  simulated_client host{cluster};
  std::optional<all_reduce_trial> trial;

  explicit drained_cluster(proto::FailurePolicy policy, uint64_t seed = 1) : cluster(three_devices(policy, seed)) {
    add_leaver(cluster, 4);
    trial.emplace(cluster, trial_options{.count = 24, .in_place = false});
    REQUIRE(trial->device(3) == 4);
  }

  coordinator_state& coordinator() { return state_of<coordinator_state>(cluster.host); }
  answer_ptr<proto::DrainResponse> drain(const std::string& name = "leaver", caf::timespan limit = 30s) {
    return test::drain(cluster, host, name, limit);
  }
  void run_steps(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
      cluster.step();
  }
  bool is_there(uint64_t device) { return coordinator().devices.find({device}) != nullptr; }
};

} // namespace

TEST_CASE("drain: under \"shrink\" what runs ends over all ranks, then the others go on without those of the node") {
  for (uint32_t steps = 0; steps <= 60; steps += 4) {
    CAPTURE(steps);
    drained_cluster x{proto::SHRINK, steps + 1};
    REQUIRE(x.trial->launch() == "");
    x.run_steps(steps);
    auto pending = x.drain();
    auto answer = x.host.wait_for(pending);
    CHECK(answer.error() == "");
    REQUIRE(answer.done_size() == 1);
    CHECK(answer.done(0) == "communicator 1 goes on without device 0x4, in epoch 2");
    CHECK_FALSE(x.is_there(4));
    auto status = x.cluster.wait(1);
    CHECK(status.status() == gpu_sim::SUCCESS);
    CHECK(status.devices_size() == 3);
    CHECK(contains(status.asyncerror(), "rank 3 (device 0x4) leaves: leaver, pid 0 is drained"));
    CHECK(x.trial->judge(x.trial->ranks_but({}), x.trial->ranks_but({3})) == "");
    REQUIRE(x.trial->launch() != ""); // it names four buffers, and there are three ranks
  }
}

TEST_CASE("drain: what is called while ranks are to leave waits, and runs over those that stay") {
  drained_cluster x{proto::SHRINK};
  x.cluster.inject(x.trial->device(1), fault(proto::FaultRequest::SLOW, std::nullopt, 50ms));
  REQUIRE(x.trial->launch() == "");
  auto pending = x.drain();
  auto& state = state_of<communicator_state>(communicator_of(x.cluster));
  x.cluster.run_until([&] { return !state.epochs().may_start(); });
  REQUIRE(x.trial->launch() == ""); // over four ranks, as it is called
  CHECK(x.host.wait_for(pending).error() == "");
  auto status = x.cluster.wait(1);
  CHECK(status.status() == gpu_sim::SUCCESS);
  CHECK(x.trial->judge(x.trial->ranks_but({3}), x.trial->ranks_but({3})) == "");
}

TEST_CASE("drain: under \"replace\" a spare takes over, with all that the device that leaves holds") {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    drained_cluster x{proto::REPLACE, seed};
    x.cluster.inject(x.trial->device(1), fault(proto::FaultRequest::SLOW, std::nullopt, 50ms));
    x.cluster.add_devices(1);
    x.coordinator().copies.forget(device_id{4}); // the host has nothing to restore it from
    REQUIRE(x.trial->launch() == "");
    auto pending = x.drain();
    auto& state = state_of<communicator_state>(communicator_of(x.cluster));
    x.cluster.run_until([&] { return !state.epochs().may_start(); });
    REQUIRE(x.trial->launch() == "");
    auto answer = x.host.wait_for(pending);
    CHECK(answer.error() == "");
    auto status = x.cluster.wait(1);
    CHECK(status.error() == "");
    REQUIRE(status.devices_size() == 4);
    CHECK(status.devices(3).deviceid().value() == 5);
    CHECK_FALSE(x.is_there(4));
    REQUIRE(answer.done_size() == 1);
    CHECK(answer.done(0)
          == fmt::format("communicator 1 goes on without device 0x4, in epoch {}, with spares", status.epoch()));
    auto all = x.trial->ranks_but({});
    CHECK(x.trial->judge(all, x.trial->ranks_but({3})) == "");
    auto expected = x.trial->expected(all);
    auto at = x.trial->output_address(3) - x.trial->comm.devices(3).minmemaddr().value()
              + status.devices(3).minmemaddr().value();
    auto found = x.cluster.copy_out(5, at, expected.size());
    CHECK(std::equal(expected.begin(), expected.end(), found.bytes().begin()));
  }
}

TEST_CASE("drain: under \"replace\" without a spare the rank stays, nothing is lost, and the answer says why") {
  drained_cluster x{proto::REPLACE};
  REQUIRE(x.trial->launch() == "");
  auto answer = x.host.wait_for(x.drain("leaver", 20s));
  CHECK(code_of(error_in(answer)) == errc::timed_out);
  CHECK(contains(answer.error(),
                 "node leaver was not drained within 20 s: communicator 1 has its device 0x4: no spare"));
  auto status = x.cluster.wait(1);
  CHECK(status.status() == gpu_sim::SUCCESS);
  CHECK(status.devices_size() == 4);
  CHECK(status.asyncerror() == "");
  CHECK(x.trial->judge(x.trial->ranks_but({}), x.trial->ranks_but({})) == "");
  CHECK(x.trial->launch() == "");
  CHECK(x.cluster.wait(1).status() == gpu_sim::SUCCESS);
  auto later = x.drain(); // and one joins
  x.cluster.add_devices(1);
  CHECK(x.host.wait_for(later).error() == "");
  CHECK(x.cluster.wait(1).devices(3).deviceid().value() == 5);
}

TEST_CASE("drain: of a communicator with the policy \"abort\" the end is waited for") {
  drained_cluster x{proto::ABORT};
  REQUIRE(x.trial->launch() == "");
  auto answer = x.host.wait_for(x.drain("leaver", 5s));
  CHECK(contains(answer.error(), "its policy is \"abort\", so it must end first"));
  CHECK(x.cluster.wait(1).status() == gpu_sim::SUCCESS);
  auto pending = x.drain();
  proto::CommDestroyRequest destroy;
  destroy.set_comm_id(1);
  CHECK(x.cluster.ask_coordinator<proto::CommDestroyResponse>(destroy).success());
  CHECK(x.host.wait_for(pending).error() == "");
  CHECK_FALSE(x.is_there(4));
}

TEST_CASE("drain: where the limit passes while something runs, the ranks stay, and what has waited runs over all") {
  drained_cluster x{proto::SHRINK};
  x.cluster.inject(x.trial->device(1), fault(proto::FaultRequest::SLOW, std::nullopt, 400ms));
  REQUIRE(x.trial->launch() == "");
  auto pending = x.drain("leaver", 500ms);
  auto& state = state_of<communicator_state>(communicator_of(x.cluster));
  x.cluster.run_until([&] { return !state.epochs().may_start(); });
  REQUIRE(x.trial->launch() == "");
  auto answer = x.host.wait_for(pending);
  CHECK(contains(answer.error(), "within 500 ms: communicator 1 has its device 0x4: its operations have not finished"));
  auto status = x.cluster.wait(1);
  CHECK(status.status() == gpu_sim::SUCCESS);
  CHECK(status.devices_size() == 4);
  CHECK(status.epoch() == 1);
  CHECK(state.epochs().may_start());
  CHECK(x.trial->judge(x.trial->ranks_but({}), x.trial->ranks_but({})) == "");
}

TEST_CASE("drain: a second drain joins the first, and both are answered") {
  drained_cluster x{proto::SHRINK};
  REQUIRE(x.trial->launch() == "");
  auto first = x.drain(), second = x.drain();
  CHECK(x.host.wait_for(first).error() == "");
  CHECK(x.host.wait_for(second).error() == "");
  CHECK(contains(x.host.wait_for(x.drain()).error(), "there is no node \"leaver\", and no other one"));
}

TEST_CASE("drain: whom the coordinator cannot do without, and who is a rank itself, is not drained") {
  drained_cluster x{proto::SHRINK};
  CHECK(x.host.wait_for(x.drain("stranger")).error() == "there is no node \"stranger\"; there are leaver");
  node_options settings;
  settings.name = "rank-0";
  settings.devices = 1;
  settings.plays_rank = true;
  settings.device = x.cluster.device_settings;
  settings.coordinator = x.cluster.host;
  auto rank = x.cluster.sys.spawn(node, settings);
  proto::ClusterInfoRequest all;
  all.set_min_devices(5);
  all.set_timeout_ns(1'000'000'000);
  auto info = x.cluster.ask_coordinator<proto::ClusterInfo>(all);
  REQUIRE(info.devices_size() == 5);
  CHECK(contains(x.host.wait_for(x.drain("rank-0")).error(), "node rank-0 is a program that is a rank"));
  x.coordinator().options.own_nodes_may_end = false;
  CHECK(contains(x.host.wait_for(x.drain()).error(), "runs in the coordinator's process"));
}

TEST_CASE("drain: a node that dies while it is drained is a loss like any other, and said so") {
  drained_cluster x{proto::SHRINK};
  x.cluster.inject(x.trial->device(1), fault(proto::FaultRequest::SLOW, std::nullopt, 50ms));
  REQUIRE(x.trial->launch() == "");
  auto pending = x.drain();
  auto& state = state_of<communicator_state>(communicator_of(x.cluster));
  x.cluster.run_until([&] { return !state.epochs().may_start(); });
  auto its_devices = state_of<node_state>(x.cluster.host_node).devices; // their supervisor
  x.cluster.self->send_exit(x.cluster.host_node, caf::exit_reason::kill);
  CHECK(contains(x.host.wait_for(pending).error(), "leaver, pid 0 was lost before it was drained"));
  x.cluster.self->send_exit(its_devices, caf::exit_reason::user_shutdown);
  auto status = x.cluster.wait(1);
  CHECK(status.status() == gpu_sim::SUCCESS);
  CHECK(status.devices_size() == 3);
  CHECK(x.trial->judge(x.trial->ranks_but({3}), x.trial->ranks_but({3})) == "");
}
