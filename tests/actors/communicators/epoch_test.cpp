#include "runtime/schedule/collective.hpp"
#include "tests/support/actor_state.hpp"
#include "tests/support/simulated_client.hpp"
#include "tests/support/trials/all_reduce_trial.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

simulation_options seeded(uint64_t seed, proto::FailurePolicy policy = proto::SHRINK) {
  simulation_options result;
  result.seed = seed;
  result.policy = policy;
  return result;
}

void run_to_epoch(simulated_cluster& cluster, epoch_number epoch) {
  auto& state = state_of<communicator_state>(communicator_of(cluster));
  cluster.run_until([&] { return state.epochs().state().epoch() >= epoch; });
}

constexpr auto kill = proto::FaultRequest::KILL, hang_up = proto::FaultRequest::HANG, slow = proto::FaultRequest::SLOW;

} // namespace

TEST_CASE("epoch: a device or a stream that hangs is suspected in time, excluded, and ended") {
  uint64_t seed = 0;
  for (uint32_t step = 0; step <= 7; ++step)
    for (bool whole_device : {false, true}) {
      CAPTURE(step);
      CAPTURE(whole_device);
      simulated_cluster cluster{seeded(++seed)};
      all_reduce_trial trial{cluster, {}};
      cluster.inject(trial.device(2), whole_device ? fault(hang_up) : fault(hang_up, step));
      auto began = time_of(cluster);
      REQUIRE(trial.launch() == "");
      auto status = cluster.wait(1);
      CHECK(status.error() == "");
      CHECK(contains(status.asyncerror(), "rank 2 (device 0x3) hangs: 3 of its last"));
      // Three requests, 100 ms apart, late after 500 ms, and a tick to see it.
      CHECK(time_of(cluster) - began < 1200ms);
      bool decided = !whole_device && step == 7;
      CHECK(trial.judge(decided ? trial.ranks_but({}) : trial.ranks_but({2}), trial.ranks_but({2})) == "");
      cluster.run_until([&] {
        return cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{}).devices_size() == 3;
      });
    }
}

TEST_CASE("epoch: a shared-memory operation is completed if any rank dies between two of its slices") {
  constexpr uint64_t count = 1u << 16; // of float64, on four ranks, in place: eight slices
  uint32_t completed = 0, run_again = 0;
  for (uint32_t steps = 0; steps <= 40; ++steps) {
    CAPTURE(steps);
    auto opts = seeded(steps + 1);
    opts.memory_bytes = 8 * count * 4;
    simulated_cluster cluster{opts};
    all_reduce_trial trial{cluster, {.algorithm = "direct", .count = count}};
    REQUIRE(trial.launch() == "");
    for (uint32_t i = 0; i < steps; ++i)
      cluster.step();
    cluster.self->send_exit(device_of(cluster, trial.device(2)), caf::exit_reason::kill);
    auto status = cluster.wait(1);
    CHECK(status.error() == "");
    bool of_all = trial.judge(trial.ranks_but({}), trial.ranks_but({2})) == "";
    bool of_survivors = trial.judge(trial.ranks_but({2}), trial.ranks_but({2})) == "";
    CHECK(of_all != of_survivors);
    ++(of_all ? completed : run_again);
  }
  CHECK(completed > 0);
  CHECK(run_again > 0);
}

TEST_CASE("epoch: a little slow is slow, very slow is lost") {
  for (auto delay : {50ms, 300ms, 900ms, 10000ms}) {
    CAPTURE(delay.count());
    simulated_cluster cluster{seeded(1)};
    all_reduce_trial trial{cluster, {}};
    cluster.inject(trial.device(1), fault(slow, std::nullopt, delay));
    REQUIRE(trial.launch() == "");
    auto status = cluster.wait(1);
    CHECK(status.error() == "");
    bool lost = delay > 500ms;
    CHECK(status.devices_size() == (lost ? 3 : 4));
    CHECK(status.epoch() == (lost ? 2 : 1));
    auto there = lost ? trial.ranks_but({1}) : trial.ranks_but({});
    CHECK(trial.judge(there, there) == "");
    if (lost)
      CHECK(contains(status.asyncerror(), "owed the next move for"));
  }
}

TEST_CASE("epoch: who is lost is named by the rank it had, also behind another one") {
  simulated_cluster cluster{{}};
  all_reduce_trial trial{cluster, {}};
  for (uint32_t rank : {1, 2})
    cluster.inject(trial.device(rank), fault(hang_up));
  REQUIRE(trial.launch() == "");
  auto status = cluster.wait(1);
  CHECK(status.devices_size() == 2);
  CHECK(contains(status.asyncerror(), "rank 2 (device 0x3) hangs: "));
}

TEST_CASE("epoch: if most ranks are slow together it is the hosts' load: none is lost, unless it lasts") {
  for (auto delay : {900ms, 20'000ms}) {
    simulated_cluster cluster{{}};
    all_reduce_trial trial{cluster, {}};
    for (uint32_t rank = 0; rank < 3; ++rank)
      cluster.inject(trial.device(rank), fault(slow, std::nullopt, delay));
    REQUIRE(trial.launch() == "");
    auto status = cluster.wait(1);
    CHECK(status.error() == "");
    const auto there = delay > 5s ? std::vector<uint32_t>{3} : trial.ranks_but({});
    CHECK(static_cast<size_t>(status.devices_size()) == there.size());
    CHECK(trial.judge(there, there) == "");
  }
}

TEST_CASE("epoch: a second member dies or hangs during the re-run") {
  uint64_t seed = 0;
  for (auto second : {kill, hang_up})
    for (uint32_t step = 0; step <= 4; ++step) { // the re-run's rounds; ranks are those of the first epoch
      CAPTURE(second);
      CAPTURE(step);
      simulated_cluster cluster{seeded(++seed)};
      all_reduce_trial trial{cluster, {}};
      cluster.inject(trial.device(0), fault(kill, step % 3));
      REQUIRE(trial.launch() == "");
      run_to_epoch(cluster, {2});
      caf::anon_send(device_of(cluster, trial.device(3)), fault(second, step));
      auto status = cluster.wait(1);
      CHECK(status.error() == "");
      auto both = trial.judge({1, 2}, {1, 2});
      bool right = both.empty() || trial.judge({1, 2, 3}, {1, 2}).empty(); // it may have come too late
      CAPTURE(both);
      CHECK(right);
    }
}

TEST_CASE("epoch: a member hangs while the others are being stopped") {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    simulated_cluster cluster{seeded(seed)};
    all_reduce_trial trial{cluster, {}};
    cluster.inject(trial.device(0), fault(kill, 1));
    REQUIRE(trial.launch() == "");
    auto& comm = state_of<communicator_state>(communicator_of(cluster));
    cluster.run_until([&] { return comm.epochs().state().phase() == epoch_change::phase::quiescing; });
    caf::anon_send(device_of(cluster, trial.device(1)), fault(hang_up));
    auto status = cluster.wait(1);
    CHECK(status.error() == "");
    auto both = trial.judge({2, 3}, {2, 3});
    CHECK((both.empty() || trial.judge({1, 2, 3}, {2, 3}).empty()));
  }
}

TEST_CASE(
  "epoch: a call for the ranks of an earlier epoch is refused with the epoch, one for those of now gets a result") {
  simulated_cluster cluster{seeded(1)};
  all_reduce_trial trial{cluster, {}};
  cluster.inject(trial.device(1), fault(kill)); // nothing runs: only the monitor can notice
  run_to_epoch(cluster, {2});
  auto status = cluster.wait(1);
  CHECK(status.devices_size() == 3);
  CHECK(status.epoch() == 2);
  auto error = trial.launch();
  CAPTURE(error);
  CHECK(contains(error, "4 input addresses for a communicator of 3 ranks; in epoch 2 the communicator has 3 ranks"));
  CHECK(contains(error, "rank 1 (device 0x2) crashed: "));
  proto::CollectiveRequest now;
  now.set_comm_id(1);
  now.mutable_collective()->set_algorithm("ring");
  now.mutable_collective()->set_count(trial.options.count);
  std::vector<uint32_t> left = {0, 2, 3};
  for (uint32_t rank = 0; rank < 3; ++rank)
    now.add_inputs(trial.input_address(left[rank]));
  CHECK(cluster.ask_coordinator<proto::CollectiveResponse>(now).error() == "");
  CHECK(cluster.wait(1).error() == "");
  CHECK(trial.judge(left, left) == "");
}

TEST_CASE("epoch: with the policy to abort, a death fails what is in flight and what comes, with the reason") {
  simulated_cluster cluster{seeded(1, proto::ABORT)};
  all_reduce_trial trial{cluster, {}};
  cluster.inject(trial.device(3), fault(kill, 2));
  REQUIRE(trial.launch() == "");
  auto status = cluster.wait(1);
  CHECK(status.status() == gpu_sim::FAILED);
  CHECK(contains(status.error(),
                 "communicator 1 has ended: rank 3 (device 0x4) crashed: killed on request, round 2 of 6"));
  CHECK(contains(trial.launch(), "rank 3 (device 0x4) crashed: "));
  for (uint32_t rank : {0, 1, 2})
    CHECK(trial.input_intact(rank));
}

TEST_CASE("epoch: what carries an old epoch is dropped, by communicator and stream") {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    simulated_cluster cluster{seeded(seed)};
    all_reduce_trial trial{cluster, {}};
    cluster.inject(trial.device(0), fault(kill, 1));
    REQUIRE(trial.launch() == "");
    run_to_epoch(cluster, {2});
    auto comm = communicator_of(cluster);
    for (uint32_t rank = 1; rank < 4; ++rank) {
      proto::RankReport finished;
      finished.set_comm_id(1);
      finished.set_epoch(1);
      finished.set_sequence(1);
      finished.set_device_id(trial.device(rank));
      caf::anon_send(comm, finished);
      auto broken = finished;
      broken.set_phase(proto::RankReport::BROKEN);
      broken.set_error("a ghost");
      caf::anon_send(comm, broken);
      proto::Quiesced stopped;
      stopped.set_comm_id(1);
      stopped.set_epoch(1);
      stopped.set_device_id(trial.device(rank));
      caf::anon_send(comm, stopped);
      auto& streams = state_of<device_state>(device_of(cluster, trial.device(rank))).streams;
      auto stream = streams.begin()->second;
      proto::Release release;
      release.set_comm_id(1);
      release.set_epoch(1);
      release.set_sequence(1);
      caf::anon_send(stream, release);
      auto memory = state_of<device_state>(device_of(cluster, trial.device(rank))).memory;
      transfer_key key{1, {1}, {1}, rank == 1 ? 3 : rank - 1, rank, 0};
      caf::anon_send(stream, offer{key, {device_id{9}, trial.input_address(rank), 24, memory}, nullptr});
    }
    auto status = cluster.wait(1);
    CHECK(status.error() == "");
    CHECK(trial.judge({1, 2, 3}, {1, 2, 3}) == "");
    for (uint32_t rank = 1; rank < 4; ++rank) {
      auto& stream = state_of<stream_state>(
        state_of<device_state>(device_of(cluster, trial.device(rank))).streams.begin()->second);
      CHECK(stream.incoming.empty());
      CHECK(stream.outgoing.empty());
    }
  }
}

TEST_CASE("epoch: several operations in flight, each reading what the one before made, and a death at any moment") {
  int in_one_epoch = 0, in_two = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    auto how = seeded(seed);
    how.offer_memory = seed % 3 != 0;
    simulated_cluster cluster{how};
    trial_options what;
    what.count = 20;
    what.op = gpu_sim::MAX;
    what.datatype = proto::INT64;
    all_reduce_trial trial{cluster, what};
    auto sum = trial;
    sum.options.op = gpu_sim::SUM;
    REQUIRE(trial.launch() == "");
    REQUIRE(sum.launch() == "");
    REQUIRE(sum.launch() == "");
    for (uint64_t i = 0; i < seed * 2 && !cluster.scheduler.jobs.empty(); ++i)
      cluster.step();
    caf::anon_send(device_of(cluster, trial.device(static_cast<uint32_t>(seed % 4))), fault(kill));
    auto status = cluster.wait(1);
    CHECK(status.error() == "");
    auto lost = static_cast<uint32_t>(seed % 4);
    auto survivors = trial.ranks_but({lost});
    // The maximum of all or of the survivors, times the sizes of the groups that ran the two sums.
    bool right = false;
    for (auto& contributors : {trial.ranks_but({}), survivors})
      for (int64_t first : {3, 4})
        for (int64_t second : {3, 4}) {
          if (first < second || (contributors.size() == 3 && first == 4))
            continue;
          auto expected = trial.expected(contributors);
          for (size_t i = 0; i < expected.size(); i += 8) {
            uint64_t value = 0;
            std::memcpy(&value, expected.data() + i, 8);
            value *= static_cast<uint64_t>(first * second);
            std::memcpy(expected.data() + i, &value, 8);
          }
          bool same = true;
          for (auto rank : survivors) {
            auto block = cluster.copy_out(trial.device(rank), trial.input_address(rank), trial.bytes);
            same = same && std::equal(expected.begin(), expected.end(), block.bytes().begin());
          }
          right = right || same;
        }
    CHECK(right);
    ++(status.epoch() == 1 ? in_one_epoch : in_two);
  }
  CHECK(in_two > 0);
}
