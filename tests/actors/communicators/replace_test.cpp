#include "runtime/algorithms/registry.hpp"
#include "tests/support/actor_state.hpp"
#include "tests/support/simulated_client.hpp"
#include "tests/support/trials/all_reduce_trial.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

simulation_options with_spares(uint64_t seed, uint32_t spares = 1) {
  simulation_options result;
  result.seed = seed;
  result.devices = 3 + spares;
  result.policy = proto::REPLACE;
  result.offer_memory = seed % 3 != 0;
  return result;
}

trial_options three_ranks(uint64_t count = 13) {
  trial_options result;
  result.ranks = 3;
  result.count = count;
  return result;
}

/// Where the rank's result is now, on the device that has the rank.
std::vector<std::byte> result_of(all_reduce_trial& trial, const gpu_sim::GetCommStatusResponse& status, uint32_t rank) {
  auto& now = status.devices(static_cast<int>(rank));
  auto& then = trial.comm.devices(static_cast<int>(rank));
  auto address = trial.output_address(rank) - then.minmemaddr().value() + now.minmemaddr().value();
  auto block = trial.cluster.copy_out(now.deviceid().value(), address, trial.bytes);
  return {block.bytes().begin(), block.bytes().end()};
}

/// All three ranks hold the result of the whole group.
void judge(all_reduce_trial& trial, const gpu_sim::GetCommStatusResponse& status) {
  CHECK(status.error() == "");
  REQUIRE(status.devices_size() == 3);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    CAPTURE(rank);
    CHECK(result_of(trial, status, rank) == trial.expected({0, 1, 2}));
  }
}

/// An in-place call on the devices that have the ranks now.
std::string launch_now(all_reduce_trial& trial, const gpu_sim::GetCommStatusResponse& status) {
  proto::CollectiveRequest request;
  request.set_comm_id(trial.comm.commid());
  request.mutable_collective()->set_algorithm("ring");
  request.mutable_collective()->set_count(trial.options.count);
  for (int rank = 0; rank < status.devices_size(); ++rank)
    request.add_inputs(status.devices(rank).minmemaddr().value() + 72);
  return trial.cluster.ask_coordinator<proto::CollectiveResponse>(request).error();
}

} // namespace

TEST_CASE("replace: if any rank dies or hangs at any step, a spare makes the result that of the whole group") {
  uint64_t seed = 0;
  auto rounds = plan(proto::ALL_REDUCE, "ring", {.world_size = 3, .count = 13})->rounds;
  for (auto kind : {proto::FaultRequest::KILL, proto::FaultRequest::HANG})
    for (uint32_t victim = 0; victim < 3; ++victim)
      for (uint32_t step = 0; step <= rounds; ++step)
        for (bool in_place : {true, false}) {
          CAPTURE(kind);
          CAPTURE(victim);
          CAPTURE(step);
          CAPTURE(in_place);
          simulated_cluster cluster{with_spares(++seed)};
          auto what = three_ranks();
          what.in_place = in_place;
          all_reduce_trial trial{cluster, what};
          cluster.inject(trial.device(victim), fault(kind, step));
          REQUIRE(trial.launch() == "");
          auto status = cluster.wait(trial.comm.commid());
          judge(trial, status);
          CHECK(status.devices(static_cast<int>(victim)).deviceid().value() == 4);
          CHECK((contains(status.asyncerror(), "crashed: ") || contains(status.asyncerror(), "hangs: ")));
        }
}

TEST_CASE("replace: two at once, and a spare that dies while it gets its inputs, are replaced by the next") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    simulated_cluster cluster{with_spares(seed, 3)};
    all_reduce_trial trial{cluster, three_ranks()};
    cluster.inject(trial.device(1), fault(proto::FaultRequest::KILL, 1));
    if (seed % 2 == 0)
      cluster.inject(trial.device(2), fault(proto::FaultRequest::KILL, static_cast<uint32_t>(seed % 4)));
    REQUIRE(trial.launch() == "");
    auto& host = state_of<coordinator_state>(cluster.host);
    auto spare = [&] { return host.devices.find(device_id{4}); };
    cluster.run_until([&] { return spare() == nullptr || !spare()->communicators.empty(); });
    for (uint64_t i = 0; i < seed % 7; ++i)
      cluster.step();
    caf::anon_send(device_of(cluster, 4), fault(proto::FaultRequest::KILL)); // the first spare
    judge(trial, cluster.wait(1));
  }
}

// Guards the fence of a spare: one that took no copy in time must not count as one that lives and only refused.
TEST_CASE("replace: a spare that hangs while it gets its inputs is ended, and the next one is taken") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    simulated_cluster cluster{with_spares(seed, 2)};
    all_reduce_trial trial{cluster, three_ranks()};
    caf::anon_send(device_of(cluster, 4), fault(proto::FaultRequest::HANG)); // the first spare; no other actor knows
    cluster.inject(trial.device(1), fault(proto::FaultRequest::KILL, 1));
    REQUIRE(trial.launch() == "");
    auto status = cluster.wait(1);
    judge(trial, status);
    CHECK(status.devices(1).deviceid().value() == 5);
    auto gone = state_of<coordinator_state>(cluster.host).devices.known(device_id{4});
    REQUIRE_FALSE(gone);
    CHECK(contains(render(gone.error()), "did not take a copy from the host in time"));
  }
}

TEST_CASE("replace: where the only spare dies while it gets its inputs, one that joins within the limit replaces it") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    simulated_cluster cluster{with_spares(seed)};
    all_reduce_trial trial{cluster, three_ranks()};
    cluster.inject(trial.device(1), fault(proto::FaultRequest::KILL, 1));
    REQUIRE(trial.launch() == "");
    auto& host = state_of<coordinator_state>(cluster.host);
    auto only = [&] { return host.devices.find(device_id{4}); };
    cluster.run_until([&] { return !only()->communicators.empty(); });
    for (uint64_t i = 0; i < seed % 7; ++i)
      cluster.step();
    caf::anon_send(device_of(cluster, 4), fault(proto::FaultRequest::KILL));
    cluster.run_until([&] { return only() == nullptr; });
    cluster.scheduler.advance_time(1s);
    cluster.add_devices(1);
    judge(trial, cluster.wait(1));
  }
}

TEST_CASE("replace: SUCCESS is not said where a spare took the place of one that was lost with its result") {
  auto rounds = plan(proto::ALL_REDUCE, "ring", {.world_size = 3, .count = 13})->rounds;
  for (std::vector<uint32_t> victims : {std::vector<uint32_t>{1}, {0, 2}})
    for (bool in_place : {true, false})
      for (uint64_t seed = 1; seed <= 10; ++seed) {
        CAPTURE(victims.size());
        CAPTURE(in_place);
        CAPTURE(seed);
        simulated_cluster cluster{with_spares(seed, 2)};
        auto what = three_ranks();
        what.in_place = in_place;
        all_reduce_trial trial{cluster, what};
        for (auto victim : victims) // when it hears that all have finished
          cluster.inject(trial.device(victim), fault(proto::FaultRequest::KILL, rounds + 1));
        REQUIRE(trial.launch() == "");
        auto status = cluster.wait(1);
        REQUIRE(status.status() == gpu_sim::FAILED);
        CHECK(static_cast<errc>(status.code()) == errc::device_lost);
        REQUIRE(status.devices_size() == 3);
        for (uint32_t rank = 0; rank < 3; ++rank) {
          CAPTURE(rank);
          auto now = status.devices(static_cast<int>(rank)).deviceid().value();
          auto lost = std::count(victims.begin(), victims.end(), rank) != 0;
          CHECK((now != trial.device(rank)) == lost);
          CHECK(contains(status.error(), fmt::format("rank {} (device 0x{:x})", rank, now)) == lost);
          CHECK(contains(status.asyncerror(), fmt::format("(device 0x{:x}) crashed: ", trial.device(rank))) == lost);
          if (!lost)
            CHECK(result_of(trial, status, rank) == trial.expected({0, 1, 2}));
        }
        // The next ones are asked for by themselves.
        for (uint32_t rank = 0; rank < 3; ++rank) {
          auto input = trial.inputs[rank];
          auto& device = status.devices(static_cast<int>(rank));
          cluster.copy_in(device.deviceid().value(), device.minmemaddr().value() + 72,
                          byte_block::of(std::move(input)));
        }
        trial.options.in_place = true;
        REQUIRE(launch_now(trial, status) == "");
        auto next = cluster.wait(1);
        CHECK(next.status() == gpu_sim::SUCCESS);
        CHECK(next.error() == "");
      }
}

// For clients that make several calls before they wait: the first may have ended before the second comes.
TEST_CASE("replace: the status is not SUCCESS if an operation after the one whose result was lost succeeds") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    simulated_cluster cluster{with_spares(seed)};
    auto what = three_ranks();
    what.in_place = false;
    all_reduce_trial trial{cluster, what};
    auto& comm = state_of<communicator_state>(communicator_of(cluster));
    REQUIRE(trial.launch() == "");
    cluster.run_until([&] { return comm.reporter().whole_status().status() != gpu_sim::IN_PROGRESS; });
    cluster.inject(trial.device(1), fault(proto::FaultRequest::KILL, 1));
    REQUIRE(trial.launch() == ""); // into the same place: its own result is whole
    auto status = cluster.wait(1);
    CHECK(status.status() == gpu_sim::FAILED);
    CHECK(contains(status.error(), "rank 1 (device 0x4) took the place of one that was lost with its results"));
    CHECK(cluster.wait(1).status() == gpu_sim::FAILED); // nothing has been called since
    for (uint32_t rank = 0; rank < 3; ++rank)
      CHECK(result_of(trial, status, rank) == trial.expected({0, 1, 2}));
  }
}

TEST_CASE("replace: where there is no spare the communicator is aborted and says why") {
  simulated_cluster cluster{with_spares(1, 0)};
  all_reduce_trial trial{cluster, three_ranks()};
  cluster.inject(trial.device(1), fault(proto::FaultRequest::KILL, 2));
  REQUIRE(trial.launch() == "");
  auto status = cluster.wait(1);
  CHECK(status.status() == gpu_sim::FAILED);
  CHECK(contains(status.error(), "rank 1 (device 0x2) crashed: "));
  CHECK(contains(status.error(), "could not be replaced: no spare with 65536 bytes of memory was free within 5.0 s"));
  CHECK(contains(trial.launch(), "of the cluster's 2 devices 0 are in no communicator"));
}

TEST_CASE(
  "replace: a spare that joins, or leaves its communicator, within the limit is in time; a smaller one is none") {
  for (bool joins : {true, false})
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      CAPTURE(joins);
      CAPTURE(seed);
      simulated_cluster cluster{with_spares(seed, joins ? 0 : 1)};
      all_reduce_trial trial{cluster, three_ranks()};
      gpu_sim::CommInitResponse other;
      if (!joins)
        other = cluster.init(1);
      cluster.device_settings.memory_bytes = 1u << 15;
      cluster.add_devices(1);
      cluster.inject(trial.device(1), fault(proto::FaultRequest::KILL, 2));
      REQUIRE(trial.launch() == "");
      auto& comm = state_of<communicator_state>(communicator_of(cluster));
      cluster.run_until([&] { return comm.epochs().state().phase() == epoch_change::phase::replacing; });
      cluster.scheduler.advance_time(3s);
      if (joins) {
        cluster.device_settings.memory_bytes = 1u << 16;
        cluster.add_devices(1);
      } else {
        proto::CommDestroyRequest destroy;
        destroy.set_comm_id(other.commid());
        REQUIRE(cluster.ask_coordinator<proto::CommDestroyResponse>(destroy).error() == "");
      }
      auto status = cluster.wait(1);
      judge(trial, status);
      CHECK(status.devices(1).maxmemaddr().value() - status.devices(1).minmemaddr().value() == 1u << 16);
    }
}

TEST_CASE(
  "replace: an input that cannot be restored fails the operation with the reason, and the next one has the spare") {
  for (bool overwritten : {true, false}) {
    CAPTURE(overwritten);
    simulated_cluster cluster{with_spares(1)};
    all_reduce_trial trial{cluster, three_ranks()};
    gpu_sim::GetCommStatusResponse status;
    std::string why = "was never copied from the host";
    if (overwritten) {
      REQUIRE(trial.launch() == "");
      REQUIRE(cluster.wait(1).error() == "");
      why = "was overwritten on the device since";
    } else {
      trial.options.count += 1000; // beyond what was copied in
    }
    cluster.inject(trial.device(1), fault(proto::FaultRequest::KILL, 1));
    REQUIRE(trial.launch() == "");
    status = cluster.wait(1);
    CHECK(status.status() == gpu_sim::FAILED);
    CHECK(contains(status.error(), "device 0x4 replaces device 0x2, but not its input"));
    CHECK(contains(status.error(), why));
    REQUIRE(status.devices_size() == 3);
    CHECK(status.devices(1).deviceid().value() == 4);
    trial.options.count = 13;
    for (uint32_t rank = 0; rank < 3; ++rank) {
      auto& now = status.devices(static_cast<int>(rank));
      auto input = trial.inputs[rank];
      cluster.copy_in(now.deviceid().value(), now.minmemaddr().value() + 72, byte_block::of(std::move(input)));
    }
    REQUIRE(launch_now(trial, status) == "");
    judge(trial, cluster.wait(1));
  }
}

TEST_CASE("replace: a device that dies while nothing runs is replaced before a wait is answered") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    simulated_cluster cluster{with_spares(seed)};
    all_reduce_trial trial{cluster, three_ranks()};
    cluster.inject(trial.device(0), fault(proto::FaultRequest::KILL));
    cluster.run_until([&] { return state_of<coordinator_state>(cluster.host).devices.find(device_id{1}) == nullptr; });
    auto& comm = state_of<communicator_state>(communicator_of(cluster));
    cluster.run_until([&] { return comm.epochs().state().epoch() > epoch_number{1}; });
    auto status = cluster.wait(1);
    CHECK(status.devices(0).deviceid().value() == 4);
    auto old = trial.launch();
    CAPTURE(old);
    CHECK(contains(old, "rank 0: the input of 104 bytes"));
    CHECK(contains(old, "in epoch"));
    CHECK(contains(old, "rank 0 (device 0x1) crashed: "));
    auto input = trial.inputs[0];
    cluster.copy_in(4, status.devices(0).minmemaddr().value() + 72, byte_block::of(std::move(input)));
    REQUIRE(launch_now(trial, status) == "");
    judge(trial, cluster.wait(1));
  }
}

TEST_CASE("replace: a call that waits for GroupEnd has its input on the spare") {
  simulated_cluster cluster{with_spares(1)};
  all_reduce_trial trial{cluster, three_ranks()};
  gpu_sim::GroupStartRequest start;
  start.set_commid(1);
  gpu_sim::GroupEndRequest end;
  end.set_commid(1);
  REQUIRE(cluster.ask_coordinator<gpu_sim::GroupStartResponse>(start).error() == "");
  REQUIRE(trial.launch() == "");
  cluster.inject(trial.device(1), fault(proto::FaultRequest::KILL));
  auto& comm = state_of<communicator_state>(communicator_of(cluster));
  cluster.run_until([&] {
    return comm.epochs().state().epoch() >= epoch_number{3}
           && comm.epochs().state().phase() == epoch_change::phase::active;
  });
  REQUIRE(cluster.ask_coordinator<gpu_sim::GroupEndResponse>(end).error() == "");
  judge(trial, cluster.wait(1));
}

TEST_CASE("replace: an input is restored to what the operation reads, although the host has sent more since") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    simulated_cluster cluster{with_spares(seed)};
    simulated_client host{cluster};
    auto what = three_ranks(60);
    what.in_place = false;
    all_reduce_trial trial{cluster, what};
    cluster.inject(trial.device(1), fault(proto::FaultRequest::KILL, static_cast<uint32_t>(seed % 4)));
    REQUIRE(trial.launch() == "");
    // Queued after the operation, on every rank: the next round's input.
    for (uint32_t rank = 0; rank < 3; ++rank)
      host.copy_in(trial.device(rank), trial.input_address(rank), counted_bytes(trial.bytes));
    auto status = cluster.wait(1);
    if (status.status() == gpu_sim::FAILED)
      CHECK(contains(status.error(), "but not its input"));
    else
      judge(trial, status);
  }
}

TEST_CASE("replace: a later operation does not get an input from before an earlier one that was decided") {
  int failed = 0, done = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    auto how = with_spares(seed);
    how.slice_bytes = 16; // putting a result in place takes many turns
    simulated_cluster cluster{how};
    trial_options what = three_ranks(40);
    what.op = gpu_sim::MAX; // of a maximum: what the first makes, the second keeps
    all_reduce_trial trial{cluster, what};
    auto second = trial;
    second.options.op = gpu_sim::SUM;
    cluster.inject(trial.device(1), fault(proto::FaultRequest::KILL, 5)); // told to put the first one's result in place
    REQUIRE(trial.launch() == "");
    REQUIRE(second.launch() == "");
    auto status = cluster.wait(1);
    if (status.status() == gpu_sim::FAILED) {
      ++failed;
      CHECK(contains(status.error(), "was overwritten on the device since"));
      continue;
    }
    ++done;
    auto maximum = trial.expected({0, 1, 2});
    auto three = maximum;
    for (size_t i = 0; i < maximum.size(); i += 8) {
      double value = 0;
      std::memcpy(&value, maximum.data() + i, 8);
      value = value + value + value;
      std::memcpy(three.data() + i, &value, 8);
    }
    for (uint32_t rank = 0; rank < 3; ++rank)
      CHECK(result_of(trial, status, rank) == three);
  }
  CHECK(failed > 0);
}
