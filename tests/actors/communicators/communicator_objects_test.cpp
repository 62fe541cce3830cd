// The objects of a communicator that need no actor.
#include "actors/communicators/call_limits.hpp"
#include "actors/communicators/journal_records.hpp"
#include "actors/communicators/operation_outcomes.hpp"
#include "actors/communicators/operation_planner.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace std::chrono_literals;

namespace {

constexpr uint64_t rank_memory_bytes = 1u << 20;

std::vector<rank_device> ranks_of(uint64_t count) {
  std::vector<rank_device> result;
  for (uint64_t id = 1; id <= count; ++id) {
    auto& metadata = result.emplace_back().metadata;
    metadata.mutable_deviceid()->set_value(id);
    metadata.mutable_minmemaddr()->set_value(id * rank_memory_bytes);
    metadata.mutable_maxmemaddr()->set_value((id + 1) * rank_memory_bytes);
  }
  return result;
}

proto::CollectiveRequest all_reduce_request(const std::vector<rank_device>& ranks, const std::string& algorithm) {
  proto::CollectiveRequest result;
  auto& what = *result.mutable_collective();
  what.set_kind(proto::ALL_REDUCE);
  what.set_count(4);
  what.set_algorithm(algorithm);
  for (auto& x : ranks)
    result.add_inputs(x.metadata.minmemaddr().value());
  return result;
}

operation ended_operation(uint64_t sequence, caf::error error = {}) {
  operation result;
  result.sequence = {sequence};
  result.state = error ? operation::phase::cancelled : operation::phase::decided;
  result.error = std::move(error);
  result.plan.mutable_collective()->set_kind(proto::BROADCAST);
  return result;
}

} // namespace

TEST_CASE("call limits: a limit is of a call or of an operation, and is removed with it") {
  const auto start = call_limits::time_point{} + 1h;
  std::optional<call_limits::time_point> timer;
  call_limits x{[&](auto when) { timer = when; }};
  const auto call = x.add(start + 2s);
  CHECK(timer == start + 2s);
  operation limited, unlimited;
  limited.sequence = {3};
  limited.limit = 1s;
  x.add_operation(limited, start);
  x.add_operation(unlimited, start);
  CHECK(unlimited.limit_number == 0);
  CHECK(limited.limit_number > call);
  CHECK(timer == start + 1s);
  CHECK(x.take_due(start + 1s) == std::vector{limited.limit_number});
  CHECK(!x.take_operation(call));
  CHECK(x.take_operation(limited.limit_number) == sequence_number{3});
  CHECK(!x.take_operation(limited.limit_number));
  x.remove(call);
  CHECK(x.take_due(start + 1h).empty());
}

TEST_CASE("operation outcomes: the host hears of errors of its batch until it has heard of the end") {
  const auto now = operation_outcomes::time_point{} + 1h;
  operation_outcomes x;
  CHECK(x.latest_text() == "no operation has ended yet");
  CHECK(x.start_batch(true));
  x.note_ended(ended_operation(1, make_error(errc::timed_out, "late")), true, now);
  x.note_ended(ended_operation(2), true, now + 1s);
  CHECK(x.failed() == 1);
  CHECK(x.succeeded() == 1);
  CHECK(x.latest_text() == "it last finished broadcast #2");
  CHECK(!x.start_batch(false)); // the host has not heard of the first one
  CHECK(code_of(x.error()) == errc::timed_out);
  x.note_reported(true);
  CHECK(!x.start_batch(true)); // its operations are in flight
  x.note_reported(false);
  CHECK(x.start_batch(true));
  CHECK(!x.error());
  x.note_ended(ended_operation(3, make_error(errc::aborted, "a rank's own call")), false, now + 2s);
  CHECK(!x.error());
}

TEST_CASE("operation planner: takes shared memory where all memories are in reach, and the requested algorithm else") {
  const communicator_options options;
  operation_planner planner{options};
  const auto ranks = ranks_of(3);
  const rank_history members{ranks};
  for (bool shares_memory : {false, true}) {
    CAPTURE(shares_memory);
    auto op = planner.operation_for(all_reduce_request(ranks, "auto"), members, {}, shares_memory);
    REQUIRE(op);
    op->sequence = {1};
    const auto plan = planner.start(*op, {1}, 3, shares_memory, 5);
    CHECK(plan.joint() == shares_memory);
    CHECK(plan.device_ids_size() == 3);
    CHECK(op->attempts == 1);
    auto ring = planner.operation_for(all_reduce_request(ranks, "ring"), members, {}, shares_memory);
    REQUIRE(ring);
    CHECK(ring->what().algorithm() == "ring");
  }
  auto unknown = planner.operation_for(all_reduce_request(ranks, "no such algorithm"), members, {}, false);
  CHECK(!unknown);
}

TEST_CASE("operation planner: a call for an earlier epoch is for the ranks that are left of it") {
  const communicator_options options;
  operation_planner planner{options};
  const auto ranks = ranks_of(3);
  rank_history members{ranks};
  members.remove({2});
  members.open({2});
  auto op = planner.operation_for(all_reduce_request(ranks, "ring"), members, {1}, false);
  REQUIRE(op);
  REQUIRE(op->slots.size() == 2);
  CHECK(op->slots[1].device == device_id{3});
}

TEST_CASE("operation planner: what may be fused depends on the smallest memory") {
  const communicator_options options;
  const operation_planner planner{options};
  const auto limits = planner.may_fuse(ranks_of(4));
  CHECK(limits.shadow_bytes == rank_memory_bytes / 16);
  CHECK(limits.packed_bytes == rank_memory_bytes / 16);
  CHECK(limits.series_bytes > limits.shadow_bytes);
}

TEST_CASE("journal records: a rank's report of a series is a record for each operation") {
  proto::RankReport report;
  report.set_sequence(4);
  CHECK(records_of_rank_end(report).size() == 1);
  for (uint64_t sequence : {4, 5, 6}) {
    auto& walk = *report.add_walks();
    walk.set_sequence(sequence);
    walk.set_bytes_received(10 * sequence);
  }
  const auto records = records_of_rank_end(report);
  REQUIRE(records.size() == 3);
  CHECK(records[2].rank_ended().sequence() == 6);
  CHECK(records[2].rank_ended().bytes_received() == 60);
  CHECK(records[2].rank_ended().walks_size() == 0);
}
