// Joint operations on nodes in virtual time: when streams are told of those that are done, by the messages that cross,
// and when a slow device comes to one.
#include "tests/support/nodes/simulated_nodes.hpp"

#include <numeric>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

/// Two ranks of a node beside the coordinator's process, which may read and write their memories.
struct joint_calls {
  static constexpr int calls = 16;

  /// `turn`: that handling a message takes.
  explicit joint_calls(caf::timespan turn) : cluster{options(turn)}, comm{cluster.init(2)} {
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

TEST_CASE("joint release: while everybody waits at the next operation, the streams are told of many at once") {
  joint_calls x{1us};
  CHECK(x.run() <= 6); // the plans, the arrivals, the releases
  CHECK(x.right());
  CHECK(x.cluster.end() == "");
}

TEST_CASE("joint release: nobody waits a millisecond for the next, where that takes long") {
  joint_calls x{600us};
  auto messages = x.run();
  CHECK(messages >= 2 + joint_calls::calls / 3);
  CHECK(messages <= 4 + joint_calls::calls);
  CHECK(x.right());
  CHECK(x.cluster.end() == "");
}

TEST_CASE("joint operations: a slow device comes to each so much later, however many are called at once") {
  joint_calls x{1us};
  proto::FaultRequest slow;
  slow.set_kind(proto::FaultRequest::SLOW);
  slow.set_delay_ns(20'000'000);
  x.cluster.inject(x.comm.devices(0).deviceid().value(), slow);
  auto before = x.cluster.now();
  x.run();
  CHECK(x.cluster.now() >= before + joint_calls::calls * 20ms);
  CHECK(x.right());
  CHECK(x.cluster.end() == "");
}
