#include "messages/errc.hpp"
#include "runtime/epochs/communicator_recovery.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

using recalled = proto::RecalledCommunicator;
using phase = operation::phase;

gpu_sim::DeviceMetadata recovered_device(uint64_t id) {
  gpu_sim::DeviceMetadata result;
  result.mutable_deviceid()->set_value(id);
  result.mutable_minmemaddr()->set_value(id << 40);
  result.mutable_maxmemaddr()->set_value((id << 40) + 4096);
  return result;
}

/// Three ranks on the devices 1 to 3, of which each says something.
struct recovered_ranks {
  proto::StoredCommunicator stored;
  std::map<device_id, recalled> known;

  recovered_ranks() {
    stored.set_comm_id(7);
    for (uint64_t id = 1; id <= 3; ++id)
      *stored.add_devices() = recovered_device(id);
    for (uint64_t id = 1; id <= 3; ++id) {
      auto& its = known[device_id{id}];
      its.set_comm_id(7);
      its.set_epoch(2);
      its.set_members_epoch(1);
      *its.mutable_members() = stored.devices();
    }
  }

  static proto::OperationPlan plan(uint64_t sequence, bool in_place, bool joint) {
    proto::OperationPlan result;
    result.set_comm_id(7);
    result.set_epoch(1);
    result.set_sequence(sequence);
    auto& what = *result.mutable_collective();
    what.set_kind(proto::ALL_REDUCE);
    what.set_algorithm(joint ? "direct" : "ring");
    what.set_datatype(proto::INT32);
    what.set_count(8);
    result.set_in_place(in_place);
    result.set_joint(joint);
    for (uint64_t id = 1; id <= 3; ++id) {
      result.add_device_ids(id);
      result.add_input_addresses((id << 40) + 64);
      result.add_output_addresses((id << 40) + (in_place ? 64 : 128));
    }
    result.mutable_origin()->mutable_host()->set_caller(99);
    result.mutable_origin()->mutable_host()->set_number(sequence);
    result.mutable_origin()->set_limit_ns(5);
    return result;
  }

  void has(uint64_t device, const proto::OperationPlan& what, recalled::Phase how) {
    auto& command = *known.at(device_id{device}).add_commands();
    *command.mutable_plan() = what;
    command.set_phase(how);
  }

  recovered_communicator recover() const { return ringmaster::recover(stored, known); }
};

} // namespace

TEST_CASE("communicator_recovery: without operations it has its ranks, and the epoch that no stream is beyond") {
  recovered_ranks x;
  x.known.at(device_id{2}).set_epoch(5);
  const auto found = x.recover();
  CHECK(found.epoch == epoch_number{5});
  CHECK(found.ranks.size() == 3);
  CHECK(found.lost.empty());
  CHECK(found.operations.empty());
  CHECK(found.latest == sequence_number{});
}

TEST_CASE("communicator_recovery: the ranks are those of the latest epoch that a device knows; the missing are lost") {
  recovered_ranks x;
  auto& newest = x.known.at(device_id{3});
  newest.set_members_epoch(4);
  newest.clear_members();
  for (uint64_t id : {3, 1, 8})
    *newest.add_members() = recovered_device(id);
  const auto found = x.recover();
  REQUIRE(found.ranks.size() == 3);
  CHECK(found.ranks[0].id() == device_id{3});
  CHECK(found.ranks[1].id() == device_id{1});
  CHECK(found.lost == std::vector{device_id{8}});
}

TEST_CASE("communicator_recovery: an operation that no rank has put in place runs again, also if all have finished") {
  for (auto how : {recalled::WAITING, recalled::FINISHED}) {
    recovered_ranks x;
    const auto what = recovered_ranks::plan(4, true, false);
    for (uint64_t id = 1; id <= 3; ++id)
      x.has(id, what, how);
    x.known.at(device_id{1}).set_ended(3);
    const auto found = x.recover();
    REQUIRE(found.operations.size() == 1);
    auto& op = found.operations.front();
    CHECK(op.state == phase::running);
    CHECK(op.attempts == 1);
    CHECK(op.sequence == sequence_number{4});
    CHECK(op.limit == std::chrono::nanoseconds{5});
    REQUIRE(op.slots.size() == 3);
    CHECK(op.slots[1].input == (uint64_t{2} << 40) + 64);
    CHECK(op.slots[1].output == op.slots[1].input);
    CHECK(op.slots[1].input_bytes == 32);
    CHECK(found.latest == sequence_number{4});
    CHECK(found.host_calls == std::vector{std::pair{call_key{99, 4}, sequence_number{4}}});
  }
}

TEST_CASE("communicator_recovery: a plan that has reached one rank only is the operation of all") {
  recovered_ranks x;
  x.has(2, recovered_ranks::plan(1, true, false), recalled::WAITING);
  const auto found = x.recover();
  REQUIRE(found.operations.size() == 1);
  CHECK(found.operations.front().state == phase::running);
  CHECK(found.operations.front().slots.size() == 3);
}

TEST_CASE("communicator_recovery: what one rank has put in place, or puts in place, is decided for all") {
  for (bool is_over : {false, true}) {
    recovered_ranks x;
    const auto what = recovered_ranks::plan(4, true, false);
    x.has(2, what, recalled::FINISHED);
    x.has(3, what, recalled::FINISHED);
    if (is_over)
      x.known.at(device_id{1}).set_ended(4);
    else
      x.has(1, what, recalled::COMMITTING);
    const auto found = x.recover();
    REQUIRE(found.operations.size() == 1);
    auto& op = found.operations.front();
    CHECK(op.state == phase::decided);
    CHECK(op.epoch == epoch_number{1});
    CHECK(op.finished.size() == 3);
    CHECK(op.committed == (is_over ? std::set{device_id{1}} : std::set<device_id>{}));
  }
}

TEST_CASE("communicator_recovery: what came after a decided operation runs again") {
  recovered_ranks x;
  for (uint64_t id = 1; id <= 3; ++id) {
    x.has(id, recovered_ranks::plan(4, true, false), recalled::FINISHED);
    x.has(id, recovered_ranks::plan(5, true, false), recalled::WAITING);
  }
  x.known.at(device_id{2}).mutable_commands()->erase(x.known.at(device_id{2}).commands().begin());
  x.known.at(device_id{2}).set_ended(4);
  const auto found = x.recover();
  REQUIRE(found.operations.size() == 2);
  CHECK(found.operations[0].state == phase::decided);
  CHECK(found.operations[1].state == phase::running);
}

TEST_CASE("communicator_recovery: shared-memory operations are as their marks say") {
  struct expected {
    bool in_place;
    uint64_t moving, moved;
    phase first, second;
  };
  for (auto& each : {expected{true, 0, 0, phase::running, phase::running},   // nothing was moved
                     expected{true, 1, 0, phase::cancelled, phase::running}, // it may have lost inputs
                     expected{false, 1, 0, phase::running, phase::running},  // its inputs are there
                     expected{true, 1, 1, phase::decided, phase::running},   // it is in place
                     expected{true, 2, 1, phase::decided, phase::cancelled}}) {
    CAPTURE(each.in_place);
    CAPTURE(each.moving);
    CAPTURE(each.moved);
    recovered_ranks x;
    for (uint64_t id = 1; id <= 3; ++id) {
      x.has(id, recovered_ranks::plan(1, each.in_place, true), recalled::ARRIVED);
      x.has(id, recovered_ranks::plan(2, each.in_place, true), recalled::ARRIVED);
    }
    x.known.at(device_id{2}).set_moving(each.moving);
    x.known.at(device_id{2}).set_moved(each.moved);
    const auto found = x.recover();
    REQUIRE(found.operations.size() == 2);
    CHECK(found.operations[0].state == each.first);
    CHECK(found.operations[1].state == each.second);
    for (auto& op : found.operations)
      CHECK(static_cast<bool>(op.error) == (op.state == phase::cancelled));
    if (each.first == phase::decided)
      CHECK(found.operations[0].committed.size() == 3); // nothing is awaited: the data is in place
  }
}

TEST_CASE("communicator_recovery: marks that a lost rank may have had are not relied on") {
  recovered_ranks x;
  for (uint64_t id = 1; id <= 3; ++id)
    x.has(id, recovered_ranks::plan(1, false, true), recalled::ARRIVED);
  x.known.erase(device_id{3});
  const auto found = x.recover();
  REQUIRE(found.operations.size() == 1);
  CHECK(found.operations[0].state == phase::cancelled);
  CHECK(contains(render(found.operations[0].error), "operation #1"));
  // Not all had come to it: nothing can have been moved.
  x.known.at(device_id{1}).mutable_commands(0)->set_phase(recalled::WAITING);
  CHECK(x.recover().operations[0].state == phase::running);
}

TEST_CASE("communicator_recovery: packed operations and series are taken apart, and keep their company") {
  recovered_ranks x;
  auto what = recovered_ranks::plan(1, true, false);
  what.mutable_collective()->set_count(12);
  what.clear_input_addresses();
  what.clear_output_addresses();
  for (uint64_t sequence : {1, 2}) {
    auto& part = *what.add_fused();
    part.set_sequence(sequence);
    part.set_count(4 * sequence);
    for (uint64_t id = 1; id <= 3; ++id) {
      part.add_input_addresses((id << 40) + 64 * sequence);
      part.add_output_addresses((id << 40) + 64 * sequence);
    }
    part.mutable_origin()->mutable_host()->set_caller(5);
    part.mutable_origin()->mutable_host()->set_number(sequence);
  }
  what.clear_origin();
  *what.add_next() = recovered_ranks::plan(3, true, false);
  for (uint64_t id = 1; id <= 3; ++id)
    x.has(id, what, recalled::WAITING);
  const auto found = x.recover();
  REQUIRE(found.operations.size() == 3);
  CHECK(found.latest == sequence_number{3});
  for (auto& op : found.operations)
    CHECK(op.leader == sequence_number{1});
  CHECK(found.operations[0].packed_with == sequence_number{1});
  CHECK(found.operations[1].packed_with == sequence_number{1});
  CHECK(found.operations[2].packed_with == sequence_number{});
  CHECK(found.operations[0].what().count() == 4);
  CHECK(found.operations[1].what().count() == 8);
  CHECK(found.operations[1].slots[0].input == (uint64_t{1} << 40) + 128);
  CHECK(found.host_calls.size() == 3);
}

TEST_CASE("communicator_recovery: calls of ranks are known, those that have ended and those in flight") {
  recovered_ranks x;
  auto what = recovered_ranks::plan(6, false, false);
  what.clear_origin();
  for (uint64_t id = 1; id <= 3; ++id) {
    auto& call = *what.mutable_origin()->add_ranks();
    call.set_caller(100 + id);
    call.set_number(9);
    what.mutable_origin()->add_rank_devices(id);
    auto& ended = *x.known.at(device_id{id}).add_rank_calls();
    ended.set_caller(100 + id);
    ended.set_number(8);
  }
  x.has(1, what, recalled::WAITING);
  const auto found = x.recover();
  CHECK(found.rank_calls.size() == 6);
  for (auto& call : found.rank_calls)
    CHECK(call.sequences.empty() == (call.call.second == 8));
}

TEST_CASE("communicator_recovery: an operation that cannot go on without a rank that is lost since fails") {
  recovered_ranks x;
  auto what = recovered_ranks::plan(1, false, false);
  what.mutable_collective()->set_kind(proto::BROADCAST);
  what.mutable_collective()->set_root(2);
  x.has(1, what, recalled::WAITING);
  for (uint64_t id : {1, 2}) {
    auto& its = x.known.at(device_id{id});
    its.set_members_epoch(2);
    its.clear_members();
    for (uint64_t member : {1, 2})
      *its.add_members() = recovered_device(member);
  }
  x.known.erase(device_id{3});
  const auto found = x.recover();
  CHECK(found.ranks.size() == 2);
  REQUIRE(found.operations.size() == 1);
  CHECK(found.operations[0].state == phase::cancelled);
  CHECK(contains(render(found.operations[0].error), "root"));
}

TEST_CASE("communicator_recovery: a rank that came after the last operation does not have its result") {
  recovered_ranks x;
  for (uint64_t id : {1, 2})
    x.known.at(device_id{id}).set_ended(4);
  CHECK(x.recover().without_results == std::vector{device_id{3}});
  SUBCASE("with an operation in flight, that one is judged") {
    x.has(1, recovered_ranks::plan(5, false, false), recalled::WAITING);
    CHECK(x.recover().without_results.empty());
  }
}

TEST_CASE("communicator_recovery: a call whose operation was cancelled has failed, unless another rank still has it") {
  recovered_ranks x;
  auto& failed = *x.known.at(device_id{1}).add_failed_calls();
  failed.mutable_call()->set_caller(102);
  failed.mutable_call()->set_number(9);
  failed.set_device_id(2); // what one stream knows is known of all ranks
  failed.set_sequence(5);
  const auto found = x.recover();
  REQUIRE(found.rank_calls.size() == 1);
  CHECK(found.rank_calls[0].device == device_id{2});
  CHECK(found.rank_calls[0].has_failed);
  x.has(3, recovered_ranks::plan(5, false, false), recalled::WAITING);
  for (auto& call : x.recover().rank_calls)
    CHECK(!call.has_failed);
}

TEST_CASE("communicator_recovery: a failed operation of the host's latest batch is not forgotten") {
  recovered_ranks x;
  for (uint64_t id : {1, 2}) {
    x.known.at(device_id{id}).set_batch(5);
    x.known.at(device_id{id}).set_failed_in_batch(11);
  }
  x.known.at(device_id{3}).set_batch(4);
  x.known.at(device_id{3}).set_failed_in_batch(9);
  CHECK(x.recover().batch == 5);
  CHECK(x.recover().failed_in_batch == sequence_number{11});

  auto again = recovered_ranks::plan(11, true, false);
  again.mutable_origin()->set_batch(5);
  x.has(3, again, recalled::WAITING); // it has not heard that the operation was cancelled
  CHECK(x.recover().failed_in_batch == sequence_number{});

  auto later = recovered_ranks::plan(12, true, false);
  later.mutable_origin()->set_batch(6);
  x.has(1, later, recalled::WAITING); // so the host has had the status of the former batch
  CHECK(x.recover().batch == 6);
  CHECK(x.recover().failed_in_batch == sequence_number{});
}
