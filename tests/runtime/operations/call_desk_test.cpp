#include "runtime/operations/call_desk.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

proto::RankCall sum(uint64_t device, uint32_t part_count = 1, uint64_t count = 8, uint64_t epoch = 1) {
  proto::RankCall result;
  result.set_device_id(device);
  result.set_epoch(epoch);
  for (uint32_t i = 0; i < part_count; ++i) {
    auto& added = *result.add_parts();
    added.mutable_collective()->set_count(count);
    added.set_in_place(true);
    added.set_input(device * 1000);
  }
  return result;
}

/// A desk over devices 10, 11, ..., and what came of its decisions.
struct fixture {
  call_desk desk{communicator_id{7}};
  call_desk::time_point now{};
  std::map<uint64_t, proto::RankCallResponse> answers;
  std::vector<call_desk::begin_operation> begun;
  std::vector<call_desk::begin_split> splits;
  std::vector<std::string> refused;
  sequence_number latest;

  explicit fixture(uint32_t ranks) {
    std::vector<device_id> devices;
    for (uint32_t rank = 0; rank < ranks; ++rank)
      devices.push_back({10 + rank});
    desk.set_ranks({1}, devices);
  }

  void serve() {
    while (auto found = desk.next())
      std::visit([this](auto& x) { take(x); }, *found);
  }
  void call(uint64_t ticket, const proto::RankCall& x, bool limited = false) {
    desk.call(ticket, x, limited, now);
    serve();
  }
  void end(sequence_number sequence, const std::string& error = {}) {
    desk.operation_ended(sequence, error.empty() ? caf::error{} : make_error(errc::device_lost, error));
    serve();
  }
  std::string error(uint64_t ticket) {
    REQUIRE(answers.count(ticket) == 1);
    return answers[ticket].error();
  }

private:
  void take(call_desk::begin_operation& x) {
    begun.push_back(x);
    desk.began(latest = latest.next(), x.parts);
  }
  void take(call_desk::begin_split& x) { splits.push_back(x); }
  void take(call_desk::refuse& x) { refused.push_back(render(x.reason)); }
  void take(call_desk::answer_call& x) {
    CHECK_MESSAGE(answers.emplace(x.ticket, x.answer).second, "a call is answered once");
    CHECK(!desk.has(x.ticket));
  }
};

} // namespace

TEST_CASE("call desk: calls that match begin one operation, and each is answered when it has ended") {
  fixture x{2};
  x.call(1, sum(10));
  CHECK(x.begun.empty());
  x.call(2, sum(11));
  REQUIRE(x.begun.size() == 1);
  CHECK(x.begun[0].request.comm_id() == 7);
  CHECK(x.begun[0].request.inputs(1) == 11000);
  CHECK(x.answers.empty());
  x.end({1});
  CHECK(x.answers.at(1).success());
  CHECK(x.answers.at(2).success());
  x.call(3, sum(10));
  x.call(4, sum(11));
  x.end({2}, "rank 1 was lost");
  CHECK(x.error(3) == "rank 1 was lost");
  CHECK(x.answers.at(4).code() == static_cast<uint32_t>(errc::device_lost));
}

TEST_CASE("call desk: a group is answered once, after the last of its parts, with each error") {
  fixture x{2};
  x.call(1, sum(10, 2));
  x.call(2, sum(11, 2));
  REQUIRE(x.begun.size() == 2);
  CHECK(x.begun[0].group == x.begun[1].group);
  CHECK(x.begun[0].group >= uint64_t{1} << 63);
  x.end({2}, "the second");
  CHECK(x.answers.empty());
  x.end({1}, "the first");
  CHECK(x.error(1) == "the second; the first");
  x.call(3, sum(10, 1));
  x.call(4, sum(11, 1));
  CHECK(x.begun[2].group != x.begun[0].group);
  x.call(5, proto::RankCall{});
  CHECK(x.answers.at(5).success()); // an empty group
}

TEST_CASE("call desk: calls that differ are refused with the reason, and the next ones match") {
  fixture x{2};
  x.call(1, sum(10, 1, 8));
  x.call(2, sum(11, 1, 9));
  CHECK(contains(x.error(1), "count: 8 on rank 0; 9 on rank 1"));
  CHECK(x.answers.at(2).code() == static_cast<uint32_t>(errc::invalid_argument));
  REQUIRE(x.refused.size() == 1);
  CHECK("communicator 7: " + x.refused[0] == x.error(1));
  x.call(3, sum(10));
  x.call(4, sum(11));
  CHECK(x.begun.size() == 1);
  x.call(5, sum(99));
  CHECK(contains(x.error(5), "device 0x63 has no rank in this communicator"));
}

TEST_CASE("call desk: a limit says who is missing, and ends what is under way only if it is the caller's") {
  fixture x{2};
  x.call(1, sum(10), true);
  x.now += 2s;
  auto missing = x.desk.expire(1, {5}, "it last finished all_reduce #4", x.now);
  CHECK(missing.late.empty());
  x.serve();
  CHECK(x.error(1)
        == "communicator 7: rank 1 (device 0xb) has not called all_reduce #5; it last finished all_reduce #4; waiting "
           "for 2.0 s; rank 0 waited for rank 1");
  CHECK(x.answers.at(1).code() == static_cast<uint32_t>(errc::timed_out));
  x.call(2, sum(11));
  CHECK(x.error(2) == x.error(1));
  x.call(3, sum(10), true);
  x.call(4, sum(11), false);
  x.now += 1s;
  CHECK(x.desk.expire(4, {6}, "", x.now).late.empty());
  auto late = x.desk.expire(3, {6}, "", x.now);
  CHECK(late.late == std::vector<sequence_number>{{1}});
  CHECK(late.waited == "1.0 s");
}

TEST_CASE("call desk: of an operation that ends without a lost rank, that rank hears no success") {
  fixture x{3};
  for (uint64_t rank = 0; rank < 3; ++rank)
    x.call(rank + 1, sum(10 + rank));
  x.desk.name({12}, "device 0xc, node-2");
  x.desk.set_ranks({2}, {{10}, {11}});
  x.end({1});
  CHECK(x.error(1) == "");
  CHECK(x.error(2) == "");
  CHECK(x.error(3) == "device 0xc, node-2 was lost: the operation has ended without it");
  CHECK(x.answers[3].code() == static_cast<uint32_t>(errc::device_lost));
  CHECK_FALSE(x.answers[3].success());
}

TEST_CASE("call desk: while members change nothing is begun") {
  fixture x{2};
  x.desk.pause(true);
  x.call(1, sum(10));
  x.call(2, sum(11));
  CHECK(x.begun.empty());
  x.desk.set_ranks({2}, {{10}, {11}});
  x.desk.pause(false);
  x.serve();
  REQUIRE(x.begun.size() == 1);
  CHECK(x.begun[0].epoch == epoch_number{1});
}

TEST_CASE("call desk: a split's parts go to the callers, and parts without a caller are returned") {
  fixture x{3};
  for (uint64_t rank = 0; rank < 3; ++rank) {
    proto::RankCall call;
    call.set_device_id(10 + rank);
    call.set_epoch(1);
    call.add_parts()->set_split(true);
    call.mutable_parts(0)->set_color(rank == 2 ? 1 : 0);
    x.call(rank + 1, call);
  }
  REQUIRE(x.splits.size() == 1);
  CHECK(x.splits[0].request.split().colors(2) == 1);
  proto::CommDeriveResponse made;
  for (uint64_t id : {20, 21})
    made.add_parts()->mutable_comm()->set_commid(id);
  for (uint64_t device : {10, 11})
    made.mutable_parts(0)->mutable_comm()->add_devices()->mutable_deviceid()->set_value(device);
  made.mutable_parts(1)->mutable_comm()->add_devices()->mutable_deviceid()->set_value(12);
  SUBCASE("they wait") {
    CHECK(x.desk.split_made(made, x.splits[0].parts).empty());
    x.serve();
    CHECK(x.answers.at(2).split_comm_id() == 20);
    CHECK(x.answers.at(2).split_rank() == 1);
    CHECK(x.answers.at(3).split_comm_id() == 21);
  }
  SUBCASE("the communicator has ended meanwhile") {
    x.desk.fail_all(make_error(errc::aborted, "it has ended"));
    x.serve();
    CHECK(x.error(3) == "it has ended");
    CHECK(x.desk.split_made(made, x.splits[0].parts) == std::vector<communicator_id>{{20}, {21}});
    x.serve();
  }
}

namespace {

/// Every order of the ranks' calls, a limit that passes, a loss and the operations' ends.
struct order {
  uint32_t ranks;
  std::vector<uint32_t> calls;
  bool expired = false, lost = false, open_again = false;
  std::set<sequence_number> ended;
  size_t paths = 0;

  void explore(const fixture& x) {
    auto step = [&](auto change) {
      auto saved = *this;
      auto next = x;
      change(next);
      explore(next);
      auto count = paths;
      *this = saved;
      paths = count;
    };
    for (uint32_t rank = 0; rank < ranks; ++rank)
      if (calls[rank] < 2 && !(lost && rank == 1))
        step([&](fixture& y) {
          auto ticket = rank * 10 + ++calls[rank];
          y.call(ticket, sum(10 + rank), rank == 0);
        });
    if (!expired && x.desk.has(1))
      step([&](fixture& y) {
        expired = true;
        auto late = y.desk.expire(1, y.latest.next(), "", y.now);
        y.serve();
        for (auto sequence : late.late)
          if (ended.insert(sequence).second)
            y.end(sequence, "too late");
      });
    if (!lost)
      step([&](fixture& y) {
        lost = true;
        y.desk.pause(true);
        y.serve();
      });
    if (lost && !open_again)
      step([&](fixture& y) {
        open_again = true;
        std::vector<device_id> left{{10}};
        for (uint32_t rank = 2; rank < ranks; ++rank)
          left.push_back({10 + rank});
        y.desk.set_ranks({2}, left);
        y.desk.pause(false);
        y.serve();
      });
    for (sequence_number sequence{1}; sequence <= x.latest; sequence = sequence.next())
      if (ended.count(sequence) == 0)
        step([&](fixture& y) {
          ended.insert(sequence);
          y.end(sequence);
        });
    finish(x); // it may end at any moment
  }

  void finish(fixture x) {
    ++paths;
    x.desk.fail_all(make_error(errc::aborted, "it has ended"));
    x.serve();
    for (sequence_number sequence{1}; sequence <= x.latest; sequence = sequence.next())
      if (ended.count(sequence) == 0)
        x.end(sequence, "it has ended");
    for (uint32_t rank = 0; rank < ranks; ++rank)
      for (uint32_t i = 1; i <= calls[rank]; ++i)
        if (x.answers.count(rank * 10 + i) == 0)
          FAIL("call ", i, " of rank ", rank, " is never answered");
  }
};

} // namespace

TEST_CASE("call desk: whatever the order of calls, limits, losses and ends, every call is answered once") {
  order two{2, {0, 0}, false, false, false, {}, 0};
  two.explore(fixture{2});
  CHECK(two.paths > 100);
}

namespace {

proto::RankCall with_id(proto::RankCall x, uint64_t number) {
  x.mutable_call()->set_caller(100 + x.device_id());
  x.mutable_call()->set_number(number);
  return x;
}

} // namespace

TEST_CASE("call_desk: operations know the calls of their ranks by their ids") {
  fixture x{2};
  x.call(1, with_id(sum(10), 5));
  x.call(2, with_id(sum(11), 9));
  REQUIRE(x.begun.size() == 1);
  auto& origin = x.begun[0].origin;
  REQUIRE(origin.ranks_size() == 2);
  CHECK(origin.rank_devices(0) == 10);
  CHECK(origin.ranks(0).number() == 5);
  CHECK(origin.rank_devices(1) == 11);
  CHECK(origin.ranks(1).number() == 9);
}

TEST_CASE(
  "call_desk: a call that was known before its communicator was built again is answered, and not matched again") {
  fixture x{2};
  x.desk.recover({10}, {110, 4}, {});
  x.desk.recover({10}, {110, 5}, {{17}, {18}}); // a group
  x.desk.recover({11}, {111, 9}, {{17}, {18}});
  x.call(1, with_id(sum(10), 4)); // it has ended
  CHECK(x.error(1) == "");
  x.call(2, with_id(sum(10, 2), 5));
  CHECK(x.answers.count(2) == 0);
  x.end({17});
  CHECK(x.answers.count(2) == 0);
  x.end({18});
  CHECK(x.error(2) == "");
  x.call(3, with_id(sum(11, 2), 9)); // its operations have ended meanwhile
  CHECK(x.error(3) == "");
  CHECK(x.begun.empty());
  // Calls that it does not know are matched as ever.
  x.call(4, with_id(sum(10), 6));
  CHECK(x.begun.empty());
  x.call(5, with_id(sum(11), 10));
  CHECK(x.begun.size() == 1);
}

TEST_CASE("call_desk: a recovered operation that fails does so for callers that come before and after its end") {
  fixture x{2};
  x.desk.recover({10}, {110, 1}, {{3}});
  x.desk.recover({11}, {111, 1}, {{3}});
  x.call(1, with_id(sum(10), 1));
  x.end({3}, "its root was lost");
  CHECK(contains(x.error(1), "its root was lost"));
  x.call(2, with_id(sum(11), 1));
  CHECK(contains(x.error(2), "its root was lost"));
}

TEST_CASE(
  "call_desk: a recovered group fails with its first operation, also if it is asked for before the second ends") {
  fixture x{2};
  x.desk.recover({10}, {110, 1}, {{3}, {4}});
  x.end({3}, "inputs may be overwritten");
  x.call(1, with_id(sum(10, 2), 1));
  CHECK(x.answers.count(1) == 0);
  x.end({4});
  CHECK(contains(x.error(1), "inputs may be overwritten"));
}

TEST_CASE("call_desk: a recovered call that had failed is answered with that, and not matched again") {
  fixture x{2};
  x.desk.recover({10}, {110, 1}, {}, make_error(errc::aborted, "it had failed before"));
  x.call(1, with_id(sum(10), 1));
  CHECK(contains(x.error(1), "it had failed before"));
  x.call(2, with_id(sum(10), 2));
  CHECK(x.answers.count(2) == 0);
  x.call(3, with_id(sum(11), 1));
  CHECK(x.begun.size() == 1);
}
