// Shared-memory operations on nodes in virtual time: when streams hear of operations that are done, by the messages
// sent, when a slow device comes to one, and what happens to memory and members before and while data moves.
#include "tests/support/actor_state.hpp"
#include "tests/support/histories/history_check.hpp"
#include "tests/support/nodes/simulated_nodes.hpp"
#include "tests/support/text_search.hpp"
#include "tests/support/trials/collective_trial.hpp"

#include <caf/send.hpp>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <utility>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

/// Two ranks of a node beside the coordinator's process, which may read and write their memories.
struct shared_memory_calls {
  static constexpr int calls = 16;

  /// `turn`: that handling a message takes.
  explicit shared_memory_calls(caf::timespan turn) : cluster{options(turn)}, comm{cluster.init(2)} {
    std::vector<float> values(calls);
    std::iota(values.begin(), values.end(), 1.0f);
    for (auto& device : comm.devices())
      cluster.copy_in(device.deviceid().value(), device.minmemaddr().value(), byte_block::of(values));
  }

  static nodes_options options(caf::timespan turn) {
    nodes_options result;
    result.devices = {2};
    result.one_host = true;
    result.turn = turn;
    return result;
  }

  /// All-reduces of a float each, called at once. Returns how many messages went to the node's relay and came from it.
  uint64_t run() {
    proto::CollectiveRequests together;
    for (int i = 0; i < calls; ++i) {
      auto& call = *together.add_calls();
      call.set_comm_id(comm.commid());
      call.mutable_collective()->set_algorithm("auto");
      call.mutable_collective()->set_datatype(proto::FLOAT32);
      call.mutable_collective()->set_count(1);
      for (auto& device : comm.devices()) {
        call.add_inputs(device.minmemaddr().value() + 4 * i);
        call.add_outputs(device.minmemaddr().value() + 4 * (calls + i));
      }
    }
    auto answers = cluster.ask_coordinator<proto::CollectiveResponses>(together);
    CHECK(answers.answers_size() == calls);
    auto status = cluster.wait(comm.commid());
    CHECK(status.status() == gpu_sim::SUCCESS);
    return status.controlmessages();
  }

  bool right() {
    for (auto& device : comm.devices()) {
      auto got = elements_of<float>(cluster.copy_out(device.deviceid().value(), device.minmemaddr().value() + 4 * calls,
                                                     4 * calls));
      for (int i = 0; i < calls; ++i)
        if (got[static_cast<size_t>(i)] != static_cast<float>(2 * (i + 1)))
          return false;
    }
    return true;
  }

  simulated_nodes cluster;
  gpu_sim::CommInitResponse comm;
};

} // namespace

TEST_CASE("shared-memory release: while all ranks wait at the next operation, streams hear of many at once") {
  shared_memory_calls x{1us};
  CHECK(x.run() <= 6); // the plans, the arrivals, the releases
  CHECK(x.right());
  CHECK(x.cluster.end() == "");
}

TEST_CASE("shared-memory release: no stream waits more than a millisecond for a next operation that takes long") {
  shared_memory_calls x{600us};
  auto messages = x.run();
  CHECK(messages >= 2 + shared_memory_calls::calls / 3);
  CHECK(messages <= 4 + shared_memory_calls::calls);
  CHECK(x.right());
  CHECK(x.cluster.end() == "");
}

TEST_CASE("joint operations: a slow device comes to each so much later, however many are called at once") {
  shared_memory_calls x{1us};
  proto::FaultRequest slow;
  slow.set_kind(proto::FaultRequest::SLOW);
  slow.set_delay_ns(20'000'000);
  x.cluster.inject(x.comm.devices(0).deviceid().value(), slow);
  auto before = x.cluster.now();
  x.run();
  CHECK(x.cluster.now() >= before + shared_memory_calls::calls * 20ms);
  CHECK(x.right());
  CHECK(x.cluster.end() == "");
}

namespace {

/// Nodes whose devices' memories the coordinator's process maps. A node reports arrivals when all of its ranks have
/// come.
nodes_options joint_nodes(std::vector<uint32_t> devices, proto::FailurePolicy policy = proto::SHRINK,
                          uint64_t memory_bytes = 1u << 16) {
  nodes_options result;
  result.devices = std::move(devices);
  result.one_host = true;
  result.policy = policy;
  result.memory_bytes = memory_bytes;
  return result;
}

collective_options direct_sum(uint32_t ranks, uint64_t count = 60) {
  collective_options result;
  result.ranks = ranks;
  result.count = count;
  return result;
}

proto::FaultRequest slow_by(caf::timespan delay) {
  proto::FaultRequest result;
  result.set_kind(proto::FaultRequest::SLOW);
  result.set_delay_ns(static_cast<uint64_t>(delay.count()));
  return result;
}

/// Another program cuts the device's memory file.
void cut_memory(simulated_nodes& cluster, uint64_t device) {
  auto& its = cluster.device_at(device);
  std::filesystem::resize_file(memory_file(its.options.memory_dir, its.id), 0);
}

std::string judge_survivors(simulated_nodes& cluster, collective_trial& trial) {
  return trial.judge([&](uint64_t device) { return !cluster.is_there(device); });
}

} // namespace

TEST_CASE("joint operations: an arrival of an earlier epoch does not count") {
  simulated_nodes cluster{joint_nodes({1, 1})};
  collective_trial trial{cluster, direct_sum(2)};
  cluster.inject(trial.device(1), slow_by(50ms));
  REQUIRE(trial.launch() == "");
  cluster.run_for(10ms); // rank 0 has come to it
  communicator_id id{trial.comm.commid()};
  auto known = state_of<coordinator_state>(cluster.host).communicators.find(id);
  REQUIRE(known != nullptr);
  auto communicator = caf::actor_cast<communicator_actor>(known->handle);
  proto::WayLost lost;
  lost.set_reason("a test");
  caf::anon_send(communicator, lost);
  cluster.run_for(10ms); // in epoch 2, too
  shared_memory_arrival late{id, {1}, sequence_number{trial.sequence()}, device_id{trial.device(1)}, nullptr};
  caf::anon_send(communicator, late);
  cluster.run_for(10ms);
  gpu_sim::GetCommStatusRequest ask;
  ask.set_commid(id.value);
  ask.set_readonly(true);
  auto now = cluster.ask_coordinator<gpu_sim::GetCommStatusResponse>(ask);
  CHECK(now.epoch() == 2);
  CHECK(now.status() == gpu_sim::IN_PROGRESS); // rank 1 has not come to it in this epoch
  CHECK(cluster.wait(id.value).status() == gpu_sim::SUCCESS);
  CHECK(judge_survivors(cluster, trial) == "");
  CHECK(cluster.end() == "");
}

TEST_CASE("joint operations: a device whose memory is cut after it has come is lost before any data moves") {
  simulated_nodes cluster{joint_nodes({1, 1, 1})};
  collective_trial trial{cluster, direct_sum(3)};
  cluster.inject(trial.device(2), slow_by(20ms));
  REQUIRE(trial.launch() == "");
  cluster.run_for(5ms); // ranks 0 and 1 have come to it
  cut_memory(cluster, trial.device(0));
  auto status = cluster.wait(trial.comm.commid());
  CHECK(status.error() == "");
  CHECK(status.status() == gpu_sim::SUCCESS); // whatever was moved from there would have failed it
  CHECK(status.devices_size() == 2);
  CHECK(judge_survivors(cluster, trial) == "");
  CHECK(cluster.end() == "");
}

TEST_CASE("joint operations: memory that is damaged while data moves fails that operation, and the next begins after") {
  for (auto policy : {proto::SHRINK, proto::REPLACE}) {
    CAPTURE(proto::FailurePolicy_Name(policy));
    simulated_nodes cluster{joint_nodes({3}, policy, 8u << 20)};
    auto comm = cluster.init(2);
    constexpr uint64_t count = 1u << 17; // of 8 bytes: more than is moved in one go
    collective_trial first{cluster, direct_sum(2, count), comm, 0};
    collective_trial second{cluster, direct_sum(2), comm, first.bytes()};
    auto of_first
      = *cluster.device_at(first.device(0)).memory->at(min_address_of(device_id{first.device(0)}), first.bytes());
    const std::vector<std::byte> before{of_first.begin(), of_first.end()};
    REQUIRE(first.launch() == "");
    REQUIRE(second.launch() == "");
    cluster.run_until([&] { return !std::ranges::equal(of_first, before); }); // the first slice has been moved
    cut_memory(cluster, first.device(1));
    auto status = cluster.wait(comm.commid());
    CHECK(status.status() == gpu_sim::FAILED);
    CHECK(status.error() != "");
    // The first has failed on all ranks: that a result of it is lost would be said only if it counted.
    CHECK(!contains(status.asyncerror(), "its output of operation"));
    history_check history{cluster.history(), comm.commid()};
    CHECK(history.problem == "");
    CHECK(history.ended.at(first.sequence()).status() == gpu_sim::FAILED);
    CHECK(history.ended.at(first.sequence()).epoch() == 1);
    CHECK(history.ended.at(second.sequence()).status() == gpu_sim::SUCCESS);
    CHECK(history.ended.at(second.sequence()).epoch() > 1);
    CHECK(judge_survivors(cluster, first) == "");
    CHECK(judge_survivors(cluster, second) == "");
    CHECK(cluster.end() == "");
  }
}
