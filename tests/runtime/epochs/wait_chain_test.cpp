#include "runtime/epochs/wait_chain.hpp"

#include <doctest/doctest.h>

#include <chrono>

using namespace ringmaster;
using namespace std::chrono_literals;

namespace {

using proto::Verdict;

/// Four ranks on two nodes in an all-reduce that does not end.
struct stuck_ranks {
  proto::CommunicatorStatus status;
  std::vector<rank_device> ranks;

  explicit stuck_ranks(std::chrono::nanoseconds without_progress = 2s) {
    auto& op = *status.add_operations();
    op.set_sequence(17);
    op.set_phase(proto::CommunicatorStatus::Operation::RUNNING);
    status.set_still_ns(static_cast<uint64_t>(without_progress.count()));
    for (uint64_t rank = 0; rank < 4; ++rank) {
      auto& x = *status.add_ranks();
      x.set_device_id(rank + 1);
      x.mutable_latest()->set_sequence(17);
      x.mutable_latest()->set_round(static_cast<uint32_t>(rank));
      x.mutable_latest()->set_rounds(6);
      rank_device device;
      device.metadata.mutable_deviceid()->set_value(rank + 1);
      device.metadata.set_node(rank < 2 ? "node-1" : "node-2");
      ranks.push_back(device);
    }
  }

  proto::CommunicatorStatus::Rank& at(int rank) { return *status.mutable_ranks(rank); }
  void wait(int rank, std::initializer_list<uint32_t> others) {
    for (auto other : others)
      at(rank).add_waits_for(other);
  }
  Verdict cause() const { return cause_in(status, ranks, 500ms); }
};

std::vector<uint32_t> culprits_of(const Verdict& x) {
  std::vector<uint32_t> result;
  for (auto& each : x.culprits())
    result.push_back(each.rank());
  return result;
}

} // namespace

TEST_CASE("wait chain: the rank at its end is the cause, from each rank that one starts at") {
  stuck_ranks x;
  x.wait(0, {1});
  x.wait(1, {2});
  x.wait(2, {3});
  const auto found = x.cause();
  CHECK(found.kind() == Verdict::HUNG);
  CHECK(culprits_of(found) == std::vector<uint32_t>{3});
  CHECK(found.sequence() == 17);
  CHECK(found.operation() == "all_reduce");
  CHECK(found.round() == 3);
  CHECK(found.rounds() == 6);
  CHECK(found.waits_size() == 3);
}

TEST_CASE("wait chain: what a rank said before its answers became late does not count") {
  stuck_ranks x;
  x.wait(0, {1});
  x.wait(1, {0});
  x.at(1).set_late(2);
  CHECK(culprits_of(x.cause()) == std::vector<uint32_t>{1});
  CHECK(x.cause().kind() == Verdict::HUNG);
  x.at(1).set_late(0);
  x.at(1).set_silent_ns(600'000'000);
  CHECK(culprits_of(x.cause()) == std::vector<uint32_t>{1});
}

TEST_CASE("wait chain: a rank in trouble is the cause, not another one that waits for none either") {
  stuck_ranks x;
  x.wait(0, {1, 2});
  x.at(2).set_late(1);
  CHECK(culprits_of(x.cause()) == std::vector<uint32_t>{2});
}

TEST_CASE("wait chain: a rank that works while others wait is slow") {
  stuck_ranks x{10ms};
  x.wait(0, {1});
  x.wait(2, {1});
  CHECK(x.cause().kind() == Verdict::SLOW);
  CHECK(culprits_of(x.cause()) == std::vector<uint32_t>{1});
  stuck_ranks y;
  y.wait(0, {1, 3});
  y.at(3).mutable_slow();
  CHECK(y.cause().kind() == Verdict::SLOW);
  CHECK(culprits_of(y.cause()) == std::vector<uint32_t>{3});
}

TEST_CASE("wait chain: ranks of two nodes that wait for each other cannot reach each other") {
  stuck_ranks x;
  x.wait(0, {1});
  x.wait(1, {2});
  x.wait(2, {1});
  x.wait(3, {2});
  CHECK(x.cause().kind() == Verdict::UNREACHABLE);
  CHECK(culprits_of(x.cause()) == std::vector<uint32_t>{1, 2});
  stuck_ranks works{10ms}; // data comes, only slowly
  works.wait(1, {2});
  works.wait(2, {1});
  CHECK(works.cause().kind() == Verdict::UNKNOWN);
  stuck_ranks together; // ranks of one process have no link between them
  together.wait(0, {1});
  together.wait(1, {0});
  CHECK(together.cause().kind() == Verdict::UNKNOWN);
  CHECK(culprits_of(together.cause()).empty());
}

TEST_CASE("wait chain: without an operation that runs there are no waits") {
  stuck_ranks x;
  x.wait(0, {1});
  x.status.mutable_operations(0)->set_phase(proto::CommunicatorStatus::Operation::DECIDED);
  CHECK(waits_in(x.status).sequence() == 0);
  CHECK(waits_in(x.status).waits().empty());
}
