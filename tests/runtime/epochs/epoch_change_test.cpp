// What an epoch's change decides in single cases; epoch_orders_test.cpp tries every order of events.
#include "runtime/epochs/epoch_change.hpp"
#include "runtime/health/verdict_text.hpp"
#include "tests/runtime/epochs/epoch_operands.hpp"

#include <algorithm>
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <variant>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::epoch_tests;

// Else the host would restore a spare from copies that the device has not held since.
TEST_CASE("epoch change: outputs that a failed operation may have written in part are reported before it ends") {
  for (bool in_place : {false, true}) {
    CAPTURE(in_place);
    epoch_change x{{1}, proto::REPLACE, devices(2)};
    auto& op = x.operations().add(sum_of(x.members().ranks(), in_place), 0);
    op.begin({1}, 2, 0);
    auto told = x.reported(report({1}, {1}, {1}, proto::RankReport::BROKEN));
    for (uint64_t id : {1, 2})
      for (auto& more : x.quiesced({id}, x.state().epoch()))
        told.push_back(more);
    std::vector<std::string> order;
    for (auto& y : told)
      if (auto changed = std::get_if<epoch_change::outputs_changed>(&y)) {
        REQUIRE(changed->ranges.size() == 2);
        CHECK(changed->ranges[1].address == 2 * memory_size + 1024);
        CHECK(changed->ranges[1].bytes == 32);
        order.push_back("changed");
      } else if (std::get_if<epoch_change::operation_ended>(&y)) {
        order.push_back("ended");
      }
    // In place a result is put into the shadow of its buffer first: what lies there is the input still.
    CHECK(order == (in_place ? std::vector<std::string>{"ended"} : std::vector<std::string>{"changed", "ended"}));
  }
}

// Else a stream that has stopped for the first epoch keeps the operation, and runs it into memory that is free.
TEST_CASE("epoch change: an operation that is overdue while streams are being stopped is removed from them") {
  epoch_change x{{1}, proto::SHRINK, devices(3)};
  x.operations().add(sum_of(x.members().ranks()), 0).begin({1}, 3, 0);
  const auto first = x.lost({3}, "a test");
  CHECK(std::get<epoch_change::stop_streams>(first.at(0)).cancelled.empty());
  CHECK(x.quiesced({1}, {2}).empty());
  const auto second = x.overdue({{1}}, "1 s", seen("waiting"));
  REQUIRE(second.size() == 1);
  const auto& stop = std::get<epoch_change::stop_streams>(second[0]);
  CHECK(stop.epoch == epoch_number{3});
  CHECK(stop.devices == std::vector<device_id>{{1}, {2}});
  CHECK(stop.cancelled == std::vector<sequence_number>{{1}});
  CHECK(x.quiesced({2}, {2}).empty()); // of the epoch before
  CHECK(x.quiesced({1}, {3}).empty());
  const auto last = x.quiesced({2}, {3});
  REQUIRE(last.size() == 4);
  CHECK(code_of(std::get<epoch_change::operation_ended>(last[0]).what.error) == errc::timed_out);
  CHECK(std::get<epoch_change::epoch_opened>(last[1]).epoch == epoch_number{3});
  for (uint64_t number : {1, 2}) { // the loss, and the operation that was overdue
    auto& given = std::get<epoch_change::verdict_given>(last[number + 1]).what;
    CHECK(given.number() == number);
    CHECK(given.outcome().epoch() == 3);
    CHECK(given.outcome().failed(0) == 1);
  }
}

TEST_CASE("epoch change: an operation whose root is lost fails, and says so; the others run again") {
  epoch_change x{{1}, proto::SHRINK, devices(3)};
  for (auto kind : {proto::BROADCAST, proto::ALL_REDUCE})
    x.operations().add(sum_of(x.members().ranks(), false, kind), 0).begin({1}, 3, 0);
  auto told = x.lost({1}, "a test");
  REQUIRE(told.size() == 1);
  auto& stop = std::get<epoch_change::stop_streams>(told[0]);
  CHECK(stop.devices == std::vector<device_id>{{2}, {3}});
  CHECK(stop.cancelled == std::vector<sequence_number>{{1}});
  CHECK(x.quiesced({2}, {2}).empty());
  told = x.quiesced({3}, {2});
  REQUIRE(told.size() == 3);
  auto& ended = std::get<epoch_change::operation_ended>(told[0]);
  CHECK(render(ended.what.error)
        == "operation #1: its root, rank 0 (device 0x1), was lost: "
           "rank 0 (device 0x1) was lost: a test");
  CHECK(code_of(ended.what.error) == errc::device_lost);
  auto& opened = std::get<epoch_change::epoch_opened>(told[1]);
  CHECK(opened.rerun == std::vector<sequence_number>{{2}});
  CHECK(opened.reason == "rank 0 (device 0x1) was lost: a test");
  auto& given = std::get<epoch_change::verdict_given>(told[2]).what;
  CHECK(text_of(given)
        == "rank 0 (device 0x1) was lost: a test. The group goes on in epoch 2 with 2 ranks; operation #2 runs again; "
           "operation #1 failed");
}

TEST_CASE("epoch change: who leaves in good order is not said to be lost, and the others go on as behind a loss") {
  epoch_change x{{1}, proto::SHRINK, devices(3)};
  CHECK(!x.lost({1}, "it was shut down", true).empty());
  CHECK(x.async_error() == "rank 0 (device 0x1) left: it was shut down");
  CHECK(x.members().ranks().size() == 2);
}

TEST_CASE("epoch change: what runs when the last device is lost ends as device_lost, when it is aborted as aborted") {
  for (bool abort : {false, true}) {
    CAPTURE(abort);
    epoch_change x{{1}, proto::SHRINK, devices(1)};
    x.operations().add(sum_of(x.members().ranks(), false), 0).begin({1}, 1, 0);
    auto told = abort ? x.abort("a test") : x.lost({1}, "a test");
    if (abort)
      for (auto& more : x.quiesced({1}, x.state().epoch()))
        told.push_back(more);
    auto expected = abort ? errc::aborted : errc::device_lost;
    CHECK(code_of(x.end_error()) == expected);
    size_t ended = 0;
    for (auto& y : told)
      if (auto operation = std::get_if<epoch_change::operation_ended>(&y)) {
        ++ended;
        CHECK(code_of(operation->what.error) == expected);
      }
    CHECK(ended == 1);
  }
}

TEST_CASE(
  "epoch change: a result that goes with its rank is missing, but not in the host's batch where the ranks called") {
  for (bool of_host : {false, true})
    for (bool by_ranks : {false, true}) {
      CAPTURE(of_host);
      CAPTURE(by_ranks);
      epoch_change x{{1}, proto::REPLACE, devices(2)};
      x.operations().batch().start(of_host);
      x.operations().add(sum_of(x.members().ranks()), by_ranks ? operation::rank_groups : 0).begin({1}, 2, 0);
      for (auto phase : {proto::RankReport::FINISHED, proto::RankReport::COMMITTED})
        for (uint64_t id : {1, 2})
          x.reported(report({id}, {1}, {1}, phase));
      CHECK(x.operations().idle());
      x.lost({2}, "a test");
      x.quiesced({1}, {2});
      proto::SpareResponse spare;
      spare.set_success(true);
      *spare.mutable_device() = device(3).metadata;
      x.spare(spare, {2});
      CHECK(x.operations().batch().without_results()
            == (of_host && by_ranks ? std::set<device_id>{} : std::set<device_id>{{3}}));
    }
}

TEST_CASE("epoch change: a spare is to hold what runs again, but not what an earlier operation makes anew") {
  epoch_change x{{1}, proto::REPLACE, devices(2)};
  auto first = sum_of(x.members().ranks(), false);
  auto second = first;
  for (auto& slot : second.slots)
    slot.input = slot.output, slot.output += 1024;
  x.operations().add(std::move(first), 0).begin({1}, 2, 0);
  x.operations().add(std::move(second), 0).begin({1}, 2, 0);
  x.lost({2}, "a test");
  auto told = x.quiesced({1}, {2});
  REQUIRE(told.size() == 1);
  auto& wanted = std::get<epoch_change::spare_wanted>(told[0]);
  CHECK(wanted.lost.deviceid().value() == 2);
  REQUIRE(wanted.inputs.size() == 1);
  CHECK(wanted.inputs[0].address == 2 * memory_size + 64);
}

TEST_CASE("epoch change: a spare is to hold the input of a call that came while the others were being stopped") {
  for (bool in_place : {false, true}) {
    CAPTURE(in_place);
    epoch_change x{{1}, proto::REPLACE, devices(3)};
    x.lost({2}, "a test");
    auto& op = x.operations().add(sum_of(x.members().ranks(), in_place), 0);
    CHECK(op.slots[1].input_bytes == 32);
    CHECK(op.slots[1].output_bytes == 32);
    CHECK(x.quiesced({1}, {2}).empty());
    auto told = x.quiesced({3}, {2});
    REQUIRE(told.size() == 1);
    auto& wanted = std::get<epoch_change::spare_wanted>(told[0]);
    REQUIRE(wanted.inputs.size() == 1);
    CHECK(wanted.inputs[0].device == device_id{2});
    CHECK(wanted.inputs[0].address == 2 * memory_size + 64);
    CHECK(wanted.inputs[0].bytes == 32);
  }
}

TEST_CASE("epoch change: while a rank waits for a spare, its addresses are looked at like anybody's") {
  epoch_change x{{1}, proto::REPLACE, devices(2)};
  x.lost({2}, "a test");
  proto::CollectiveRequest request;
  request.mutable_collective()->set_kind(proto::ALL_REDUCE);
  request.mutable_collective()->set_count(4);
  request.add_inputs(memory_size + 64);
  auto without = make_operation(request, "ring", x.members().ranks());
  REQUIRE(!without);
  CHECK(code_of(without.error()) == errc::invalid_argument);
  request.add_inputs(3 * memory_size - 8);
  auto beyond = make_operation(request, "ring", x.members().ranks());
  REQUIRE(!beyond);
  CHECK(code_of(beyond.error()) == errc::out_of_range);
}

TEST_CASE("epoch change: of a rank that was dropped, a call for an older epoch may say anything") {
  epoch_change x{{1}, proto::SHRINK, devices(3)};
  x.lost({2}, "a test");
  x.quiesced({1}, {2});
  x.quiesced({3}, {2});
  auto then = x.members().in_with_dropped({1});
  REQUIRE(then.size() == 3);
  CHECK(!then[0].dropped);
  CHECK(then[1].dropped);
  CHECK(!then[2].dropped);
  proto::CollectiveRequest request;
  request.mutable_collective()->set_kind(proto::ALL_REDUCE);
  request.mutable_collective()->set_count(4);
  for (auto address : {memory_size + 64, uint64_t{0}, 3 * memory_size + 64})
    request.add_inputs(address);
  auto op = make_operation(request, "ring", then);
  REQUIRE(op);
  CHECK(op->slots[1].input_bytes == 0);
  CHECK_FALSE(op->drop({2}));
}

TEST_CASE("epoch change: where members may have lost each other's words, what runs runs again over all of them") {
  using decision_kind = epoch_change;
  epoch_change epochs{{1}, proto::SHRINK, devices(3)};
  CHECK(epochs.way_lost(seen("nodes a and b have no direct way")).empty()); // nothing is under way
  auto& op = epochs.operations().add(sum_of(epochs.members().ranks()), 0);
  op.epoch = epochs.state().epoch();
  op.attempts = 1;
  auto told = epochs.way_lost(seen("nodes a and b have no direct way"));
  REQUIRE(told.size() == 1);
  auto stop = std::get<decision_kind::stop_streams>(told[0]);
  CHECK(stop.epoch == epoch_number{2});
  CHECK(stop.devices.size() == 3);
  CHECK(stop.cancelled.empty());
  CHECK(epochs.way_lost(seen("once more")).empty()); // they are being stopped
  for (uint64_t id : {1, 2, 3})
    told = epochs.quiesced({id}, {2});
  REQUIRE(told.size() == 2);
  auto opened = std::get<decision_kind::epoch_opened>(told[0]);
  CHECK(opened.reason == "nodes a and b have no direct way");
  CHECK(opened.rerun == std::vector{op.sequence});
  CHECK(epochs.members().ranks().size() == 3);
  CHECK(epochs.async_error().empty()); // no member was lost
}

TEST_CASE("epoch change: all losses are named, of very many the latest and how many there were before") {
  epoch_change epochs{{1}, proto::SHRINK, devices(30)};
  for (uint64_t id = 1; id <= 2; ++id)
    epochs.lost({id}, "killed");
  CHECK(epochs.async_error() == "rank 0 (device 0x1) was lost: killed; rank 1 (device 0x2) was lost: killed");
  for (uint64_t id = 3; id <= 20; ++id)
    epochs.lost({id}, "killed");
  CHECK(epochs.async_error().starts_with("after 4 earlier losses: rank 4 (device 0x5) was lost: killed; "));
  CHECK(epochs.async_error().ends_with("rank 19 (device 0x14) was lost: killed"));
}

namespace {

proto::SpareResponse spare_with_inputs(uint64_t id) {
  proto::SpareResponse result;
  result.set_success(true);
  *result.mutable_device() = device(id).metadata;
  result.set_inputs_restored(true);
  return result;
}

template <class T>
size_t count_of(const epoch_change::decisions& told) {
  return static_cast<size_t>(std::count_if(told.begin(), told.end(),
                                           [](auto& x) { return std::holds_alternative<T>(x); }));
}

} // namespace

TEST_CASE("epoch change: a call made while a rank is being replaced fails, for the spare does not hold its input") {
  epoch_change x{{1}, proto::REPLACE, devices(2)};
  x.operations().add(sum_of(x.members().ranks(), false), 0).begin({1}, 2, 0);
  x.lost({2}, "a test");
  REQUIRE(count_of<epoch_change::spare_wanted>(x.quiesced({1}, {2})) == 1); // for the inputs of #1
  x.operations().add(sum_of(x.members().ranks(), false), 0);                // #2, of which the request says nothing
  auto told = x.spare(spare_with_inputs(3), {2});
  REQUIRE(count_of<epoch_change::stop_streams>(told) == 1);
  CHECK(std::get<epoch_change::stop_streams>(told.front()).cancelled == std::vector<sequence_number>{{2}});
  for (uint64_t id : {1, 3})
    told = x.quiesced({id}, x.state().epoch());
  REQUIRE(count_of<epoch_change::operation_ended>(told) == 1);
  auto& ended = std::get<epoch_change::operation_ended>(told.front());
  CHECK(ended.what.sequence == sequence_number{2});
  CHECK(code_of(ended.what.error) == errc::device_lost);
  CHECK(render(ended.what.error)
        == "device 0x3 replaces device 0x2, but not its input: the call came while the device was being replaced");
  REQUIRE(told.size() == 3);
  CHECK(std::get<epoch_change::epoch_opened>(told[1]).rerun == std::vector<sequence_number>{{1}});
  auto& given = std::get<epoch_change::verdict_given>(told[2]).what;
  CHECK(
    text_of(given)
    == "rank 1 (device 0x2) was lost: a test. Device 0x3 took the place; the group goes on in epoch 3 with 2 ranks; "
       "operation #1 runs again; operation #2 failed");
  // What is called from now on has its input on the spare.
  auto& third = x.operations().add(sum_of(x.members().ranks(), false), 0);
  CHECK(third.slots[1].device == device_id{3});
  CHECK(third.state == operation::phase::running);
}

TEST_CASE("epoch change: a spare that is lost is no longer missing a result, the one in its place is") {
  epoch_change x{{1}, proto::REPLACE, devices(2)};
  x.operations().batch().start(true);
  x.operations().add(sum_of(x.members().ranks()), 0).begin({1}, 2, 0);
  for (auto phase : {proto::RankReport::FINISHED, proto::RankReport::COMMITTED})
    for (uint64_t id : {1, 2})
      x.reported(report({id}, {1}, {1}, phase));
  device_id lost{2};
  for (uint64_t spare : {3, 4}) {
    x.lost(lost, "a test");
    CHECK(x.operations().batch().without_results().empty());
    x.quiesced({1}, x.state().epoch());
    x.spare(spare_with_inputs(spare), lost);
    lost = device_id{spare};
    CHECK(x.operations().batch().without_results() == std::set<device_id>{lost});
    for (auto id : {device_id{1}, lost})
      x.quiesced(id, x.state().epoch());
  }
}

TEST_CASE("epoch change: it does not end while data is being moved, whatever else happens") {
  // What happens after the data has been moved, and before it is known that no other data moves.
  for (bool loses : {false, true})
    for (bool destroys : {false, true}) {
      CAPTURE(loses);
      CAPTURE(destroys);
      epoch_change x{{1}, proto::SHRINK, devices(2)};
      auto& op = x.operations().add(sum_of(x.members().ranks(), false), 0);
      op.begin({1}, 2, 0);
      x.data_moves(op);
      x.hold();
      auto early = destroys ? x.destroy("a test") : x.abort("a test");
      auto note = [&](epoch_change::decisions more) { early.insert(early.end(), more.begin(), more.end()); };
      note(x.data_moved({1}));
      CHECK(count_of<epoch_change::operation_ended>(early) == 1);
      note(x.let_go());
      if (loses)
        note(x.lost({2}, "a test"));
      CHECK(count_of<epoch_change::stop_streams>(early) == 0);
      CHECK(count_of<epoch_change::communicator_gone>(early) == 0);
      CHECK(count_of<epoch_change::communicator_aborted>(early) == 0);
      CHECK(x.state().stop_is_deferred());
      auto told = x.transfer_finished();
      REQUIRE(count_of<epoch_change::stop_streams>(told) == 1);
      CHECK(count_of<epoch_change::communicator_gone>(told) == 0);
      CHECK(x.state().phase() == epoch_change::phase::ending);
      for (uint64_t id = loses ? 1 : 2; id >= 1; --id)
        told = x.quiesced({id}, x.state().epoch());
      CHECK(count_of<epoch_change::communicator_gone>(told) == (destroys ? 1 : 0));
      CHECK(count_of<epoch_change::communicator_aborted>(told) == (destroys ? 0 : 1));
    }
}
