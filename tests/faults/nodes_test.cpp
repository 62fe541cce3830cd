// A cluster of several processes in virtual time: what is lost between them, and what is not.
#include "tests/support/histories/history_check.hpp"
#include "tests/support/nodes/calling_ranks.hpp"
#include "tests/support/nodes/simulated_nodes.hpp"
#include "tests/support/text_search.hpp"
#include "tests/support/trials/collective_trial.hpp"

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <fstream>
#include <string>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

/// A ring all-reduce over all devices of a cluster, which is enqueued.
struct ring_on_nodes {
  explicit ring_on_nodes(const nodes_options& opts, uint32_t ranks) : cluster{opts}, trial{cluster, what(ranks)} {
    REQUIRE(trial.launch() == "");
  }

  static collective_options what(uint32_t ranks) {
    collective_options result;
    result.algorithm = "ring";
    result.ranks = ranks;
    result.count = 400;
    return result;
  }

  gpu_sim::GetCommStatusResponse end() {
    auto result = cluster.wait(trial.comm.commid());
    CHECK(trial.judge([this](uint64_t device) { return !cluster.is_there(device); }) == "");
    return result;
  }

  simulated_nodes cluster;
  collective_trial trial;
};

nodes_options nodes_of(uint64_t seed, std::vector<uint32_t> devices) {
  nodes_options result;
  result.seed = seed;
  result.devices = std::move(devices);
  return result;
}

} // namespace

TEST_CASE("nodes: who has which rank is said to a process once, not to each of its devices") {
  auto bytes_for = [](uint32_t devices) {
    simulated_nodes cluster{nodes_of(1, {devices})};
    auto before = cluster.bytes_said();
    auto comm = cluster.init(devices);
    CHECK(cluster.wait(comm.commid()).status() == gpu_sim::SUCCESS);
    return static_cast<double>(cluster.bytes_said() - before);
  };
  CHECK(bytes_for(32) / bytes_for(8) < 5); // by the devices, not by their square
}

TEST_CASE("nodes: the memory of a device that is lost is let go of by all processes, and its file is removed") {
  auto how = nodes_of(1, {2, 1});
  how.one_host = true;
  simulated_nodes cluster{how};
  auto comm = cluster.init(3);
  auto victim = comm.devices(0).deviceid().value();
  auto mappings = [&] {
    std::ifstream maps{"/proc/self/maps"};
    auto name = fmt::format("device-{:x}.memory", victim);
    int result = 0;
    for (std::string line; std::getline(maps, line);)
      result += line.find(name) != std::string::npos ? 1 : 0;
    return result;
  };
  CHECK(cluster.wait(comm.commid()).status() == gpu_sim::SUCCESS);
  CHECK(mappings() == 2); // its process's, and the coordinator's
  cluster.inject(victim, proto::FaultRequest{});
  cluster.run_for(3s);
  CHECK_FALSE(cluster.is_there(victim));
  CHECK(mappings() == 0); // one whose file was removed would be there with its name
}

TEST_CASE("nodes: two that lose each other, but not the coordinator, do it again by way of the coordinator") {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    CAPTURE(seed);
    ring_on_nodes x{nodes_of(seed, {2, 2}), 4};
    x.cluster.run_for(1ms);
    auto noticed = x.cluster.now(); // at once, at both ends
    x.cluster.cut(1, 2);
    CHECK(x.cluster.wait(x.trial.comm.commid()).status() == gpu_sim::SUCCESS);
    CHECK(x.cluster.now() - noticed < 1s);
    auto status = x.end();
    CHECK(status.status() == gpu_sim::SUCCESS);
    CHECK(status.devices_size() == 4);
    CHECK(status.epoch() >= 2);
    auto info = x.cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{});
    CHECK(info.nodes(0).apart_size() + info.nodes(1).apart_size() == 2);
    x.cluster.heal(1, 2);
    x.cluster.run_until([&] { return x.cluster.connected(1, 2); });
    x.cluster.run_for(1s);
    info = x.cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{});
    CHECK(info.nodes(0).apart_size() + info.nodes(1).apart_size() == 0);
    CHECK(x.cluster.end() == "");
  }
}

TEST_CASE("nodes: a lost connection is made again when both ends know, though one learns seconds later") {
  for (auto [first, second] : {std::pair<size_t, size_t>{1, 2}, {2, 1}}) {
    CAPTURE(first);
    ring_on_nodes x{nodes_of(first, {2, 2}), 4};
    x.cluster.run_for(1ms);
    x.cluster.cut(first, second, 3s);
    x.cluster.later(50ms, [&] { x.cluster.heal(first, second); });
    x.cluster.run_for(2s);
    CHECK_FALSE(x.cluster.connected(1, 2));
    auto status = x.end();
    CHECK(status.error() == "");
    CHECK(status.devices_size() == 4);
    x.cluster.run_for(2s);
    CHECK(x.cluster.connected(1, 2));
    CHECK(x.cluster.end() == "");
  }
}

TEST_CASE("nodes: they have a direct way again after a cut that heals late") {
  for (uint64_t seed : {1, 2, 3, 1714}) {
    CAPTURE(seed);
    auto opts = nodes_of(seed, {2, 2});
    opts.network.delay = 1us; // sooner than anybody comes to read
    ring_on_nodes x{opts, 4};
    x.cluster.run_for(1ms);
    x.cluster.cut(1, 2, seed % 20 * 1s);
    x.cluster.later(40s, [&] { x.cluster.heal(1, 2); });
    CHECK(x.end().error() == "");
    x.cluster.run_for(50s); // tried every few seconds
    CHECK(x.cluster.connected(1, 2));
    auto info = x.cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{});
    CHECK(info.nodes(0).apart_size() + info.nodes(1).apart_size() == 0);
    CHECK(x.cluster.end() == "");
  }
}

TEST_CASE("nodes: two that are disconnected silently go on in a new epoch and lose no device") {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    CAPTURE(seed);
    ring_on_nodes x{nodes_of(seed, {2, 2}), 4};
    x.cluster.run_for(1ms);
    auto before = x.cluster.now();
    x.cluster.stall(1, 2); // no connection ends, and nothing comes
    x.cluster.later(15s, [&] { CHECK(x.cluster.connected(1, 2)); });
    auto status = x.end();
    CHECK(status.status() == gpu_sim::SUCCESS);
    CHECK(status.devices_size() == 4);
    CHECK(status.epoch() >= 2);
    CHECK(x.cluster.now() - before < 25s); // 20 s of silence, and two looks
    CHECK_FALSE(x.cluster.connected(1, 2));
    CHECK(x.cluster.end() == "");
  }
}

TEST_CASE("nodes: status reports a stopped one and its silence at once, until it continues") {
  simulated_nodes cluster{nodes_of(1, {1, 2})};
  auto silent = [&](int node) {
    auto before = cluster.now();
    auto status = cluster.ask_coordinator<proto::ClusterStatus>(proto::ClusterStatusRequest{});
    CHECK(cluster.now() - before < 100ms);
    return std::chrono::nanoseconds{status.cluster().nodes(node).silent_ns()};
  };
  CHECK(silent(0) + silent(1) == 0ns);
  cluster.pause(2);
  CHECK(silent(1) > 0ns);
  cluster.run_for(2s);
  CHECK(silent(0) == 0ns);
  CHECK(silent(1) > 2s);
  cluster.resume(2);
  cluster.run_for(1s);
  CHECK(silent(1) == 0ns);
  cluster.pause(2);
  CHECK(silent(1) < 1s); // of this silence
  cluster.resume(2);
  CHECK(cluster.end() == "");
}

TEST_CASE("nodes: a request to a stopped one is answered with its silence, and takes effect when it continues") {
  simulated_nodes cluster{nodes_of(1, {1, 2})};
  auto lost = cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{}).devices(0).metadata();
  auto where = cluster.host_index_of(lost.deviceid().value()).value();
  auto name = simulated_nodes::name_of(where);
  cluster.pause(where);
  auto begun = cluster.now();
  auto killed = cluster.ask_coordinator<proto::FaultResponse>(lost.deviceid(), fault(proto::FaultRequest::KILL));
  CHECK(cluster.now() - begun < 2100ms);
  auto silence = ": it is busy, stopped or unreachable";
  CHECK(
    killed.error()
    == fmt::format("device 0x{:x}, {} on host-of-{}, pid {} did not answer within 2.0 s; its process has been silent "
                   "for 40 ms{}",
                   lost.deviceid().value(), name, name, where, silence));
  proto::DrainRequest drain;
  drain.set_node(name);
  drain.set_timeout_ns(3'000'000'000);
  auto drained = cluster.ask_coordinator<proto::DrainResponse>(drain);
  CHECK(drained.error()
        == fmt::format("node {} was not drained within 3 s: it was asked to exit, and has not; its process has been "
                       "silent for 3.08 s{}",
                       name, silence));
  cluster.resume(where);
  cluster.run_until([&] { return !cluster.is_there(lost.deviceid().value()); });
}

TEST_CASE("nodes: a device that one communicator gives up is lost to all that have it, though it says no word") {
  simulated_nodes cluster{nodes_of(1, {1, 1, 1})};
  auto first = cluster.init(3);
  proto::CommDeriveRequest again;
  again.set_comm_id(first.commid());
  again.mutable_split();
  auto second = cluster.ask_coordinator<proto::CommDeriveResponse>(again);
  REQUIRE(second.error() == "");
  collective_trial trial{cluster, ring_on_nodes::what(3), first, 0};
  cluster.pause(3);
  REQUIRE(trial.launch() == "");
  for (auto id : {first.commid(), second.parts(0).comm().commid()}) {
    auto status = cluster.wait(id);
    CHECK(status.devices_size() == 2);
    CHECK(status.epoch() == 2);
    CHECK(contains(status.asyncerror(), "hangs: "));
  }
  CHECK(cluster.end() == "");
}

TEST_CASE("nodes: a rank whose process is stopped before it has called is lost, and the others' calls go on") {
  simulated_nodes cluster{nodes_of(1, {1, 1, 1})};
  auto comm = cluster.init(3);
  std::deque<collective_trial> trials;
  trials.emplace_back(cluster, ring_on_nodes::what(3), comm, 0);
  calling_ranks callers{cluster, comm};
  cluster.pause(3);
  auto begun = cluster.now();
  callers.call_later(trials, {0us}, 1us, false);
  cluster.run_until([&] { return callers.answered(true); });
  CHECK(callers.failure() == "");
  CHECK(callers.is_well(0));
  CHECK(cluster.now() - begun < 4s); // suspicion.pause-max, and a few looks
  CHECK(cluster.wait(comm.commid()).devices_size() == 2);
  cluster.resume(3);
  cluster.run_until([&] { return callers.answered(false); });
  CHECK(cluster.end() == "");
}

TEST_CASE("nodes: one that is stopped for half a second loses nothing") {
  for (size_t process : {0, 1}) {
    CAPTURE(process);
    ring_on_nodes x{nodes_of(process + 1, {1, 2}), 3};
    x.cluster.run_for(1ms);
    x.cluster.pause(process);
    x.cluster.later(500ms, [&] { x.cluster.resume(process); });
    auto status = x.end();
    CHECK(status.status() == gpu_sim::SUCCESS);
    CHECK(status.epoch() == 1);
    CHECK(x.cluster.end() == "");
  }
}

TEST_CASE("nodes: all processes paused together, for 25 s or 5 minutes, lose nothing in any order of continuing") {
  for (auto length : {25s, 300s})
    for (size_t first : {0, 1, 2}) {
      CAPTURE(length.count());
      CAPTURE(first);
      ring_on_nodes x{nodes_of(first + 1, {1, 2}), 3};
      x.cluster.run_for(1ms);
      for (size_t process = 0; process < x.cluster.processes(); ++process) {
        x.cluster.pause(process);
        x.cluster.later(length + (process == first ? 0ms : 300ms), [&, process] { x.cluster.resume(process); });
      }
      auto status = x.end();
      CHECK(status.status() == gpu_sim::SUCCESS);
      CHECK(status.epoch() == 1);
      CHECK(status.devices_size() == 3);
      x.cluster.run_for(30s);
      CHECK(x.cluster.connected(1, 2));
      auto info = x.cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{});
      CHECK(info.nodes_size() == 2);
      CHECK(info.gone_size() == 0);
      CHECK(x.cluster.end() == "");
    }
}

TEST_CASE("nodes: all processes paused together while nothing is in flight lose nothing either") {
  simulated_nodes cluster{nodes_of(5, {1, 1, 1})};
  auto comm = cluster.init(3);
  cluster.run_for(3s);
  for (size_t process = 0; process < cluster.processes(); ++process) {
    cluster.pause(process);
    cluster.later(300s + process * 100ms, [&, process] { cluster.resume(process); });
  }
  cluster.run_for(340s);
  CHECK(cluster.wait(comm.commid()).devices_size() == 3);
  auto info = cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{});
  CHECK(info.nodes_size() == 3);
  CHECK(info.gone_size() == 0);
  CHECK(cluster.end() == "");
}

TEST_CASE("nodes: one that loses the coordinator joins again with new devices, under its name") {
  for (auto noticed_later : {0s, 30s}) {
    CAPTURE(noticed_later.count());
    simulated_nodes cluster{nodes_of(2, {1, 2})};
    auto before = cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{});
    cluster.cut(2, 0, noticed_later); // the node notices first
    cluster.run_for(1s);
    cluster.heal(2, 0);
    cluster.join_again(2);
    auto info = before;
    auto joined_again = [&] {
      info = cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{});
      return info.devices_size() == 3 && info.nodes_size() == 2 && info.nodes(1).node_id() != before.nodes(1).node_id();
    };
    for (int tries = 0; tries < 100 && !joined_again(); ++tries)
      cluster.run_for(100ms);
    REQUIRE(joined_again());
    CHECK(info.nodes(1).name() == before.nodes(1).name());
    for (auto& device : info.devices())
      if (device.node_id() == info.nodes(1).node_id())
        for (auto& former : before.devices())
          CHECK(device.metadata().deviceid().value() != former.metadata().deviceid().value());
    auto comm = cluster.init(3);
    CHECK(cluster.wait(comm.commid()).status() == gpu_sim::SUCCESS);
    CHECK(cluster.end() == "");
  }
}

TEST_CASE("nodes: one that is killed takes its devices with it, and the others do it again") {
  ring_on_nodes x{nodes_of(7, {1, 2}), 3};
  x.cluster.run_for(1ms);
  x.cluster.kill(2);
  auto status = x.end();
  CHECK(status.status() == gpu_sim::SUCCESS);
  CHECK(status.devices_size() == 1);
  CHECK(x.cluster.end() == "");
}

TEST_CASE("nodes: under replace a spare of another node takes over, and SUCCESS means that all of the answer have it") {
  int taken_over = 0, lacking = 0;
  for (int moment = 0; moment < 40; ++moment) {
    CAPTURE(moment);
    auto opts = nodes_of(static_cast<uint64_t>(moment) + 1, {1, 1, 2});
    opts.policy = proto::REPLACE;
    ring_on_nodes x{opts, 2};
    x.cluster.run_for(moment * 100us);
    auto lost = x.trial.device(static_cast<uint32_t>(moment % 2));
    x.cluster.kill(x.cluster.host_index_of(lost).value());
    x.cluster.run_for(1s); // all processes know, and the spare has its place
    auto status = x.end();
    CHECK(status.devices_size() == 2);
    for (auto& device : status.devices())
      CHECK(x.cluster.is_there(device.deviceid().value()));
    history_check history{x.cluster.history(), x.trial.comm.commid()};
    CHECK(history.problem == "");
    auto& ended = history.ended.at(x.trial.sequence());
    auto& holders = history.epochs.at(ended.epoch());
    bool all_hold = std::all_of(status.devices().begin(), status.devices().end(), [&](auto& device) {
      return std::count(holders.begin(), holders.end(), device.deviceid().value()) != 0;
    });
    CHECK((status.status() == gpu_sim::SUCCESS) == all_hold);
    CHECK((status.error().find("took the place of one that was lost with its results") != std::string::npos)
          == !all_hold);
    taken_over += all_hold && ended.epoch() > 1;
    lacking += !all_hold;
    CHECK(x.cluster.end() == "");
  }
  CHECK(taken_over > 5);
  CHECK(lacking > 5);
}
