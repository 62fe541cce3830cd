// The objects that `epoch_change` consists of.
#include "runtime/epochs/communicator_end.hpp"
#include "runtime/epochs/departures.hpp"
#include "runtime/epochs/epoch_state.hpp"
#include "runtime/epochs/loss_log.hpp"
#include "runtime/epochs/rank_history.hpp"
#include "runtime/epochs/spare_search.hpp"
#include "runtime/operations/batch_results.hpp"
#include "tests/runtime/epochs/epoch_operands.hpp"
#include "tests/runtime/invariants/broken_invariant.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <functional>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::epoch_tests;

namespace {

using phases = communicator_phase;

void refuses(const std::string& sentence, const std::function<void()>& what) {
  const auto log = log_of_abort(what);
  CHECK_MESSAGE(contains(log, "an invariant is broken: " + sentence), log);
}

} // namespace

TEST_CASE("epoch state: goes through a change of members, and to the end") {
  epoch_state x;
  CHECK(x.is_active());
  x.enter(phases::quiescing);
  x.start_next_epoch({{1}, {2}});
  CHECK(x.epoch() == epoch_number{2});
  CHECK(x.is_changing());
  CHECK(!x.has_stopped({1}));
  CHECK(x.note_stopped({1}));
  CHECK(!x.note_stopped({1}));
  CHECK(!x.all_have_stopped());
  CHECK(x.note_stopped({2}));
  CHECK(x.all_have_stopped());
  x.enter(phases::replacing);
  x.enter(phases::quiescing);
  x.enter(phases::active);
  CHECK(x.state_text() == "active in epoch 2");
  x.enter(phases::ending);
  CHECK(x.is_ending());
  x.enter(phases::aborted);
  CHECK(!x.is_changing());
}

TEST_CASE("epoch state: refuses every transition that is not in the drawing") {
  const std::string sentence = "a phase follows one that it may follow";
  refuses(sentence, [] { epoch_state{}.enter(phases::active); });
  refuses(sentence, [] { epoch_state{}.enter(phases::replacing); });
  refuses(sentence, [] { epoch_state{}.enter(phases::aborted); });
  refuses(sentence, [] {
    epoch_state x;
    x.enter(phases::ending);
    x.enter(phases::quiescing);
  });
  refuses("an epoch number is used up while members are being stopped", [] { epoch_state{}.start_next_epoch({}); });
}

TEST_CASE("epoch state: an epoch opens when all members have stopped") {
  epoch_state x;
  x.enter(phases::quiescing);
  x.start_next_epoch({{1}});
  for (auto next : {phases::active, phases::replacing})
    refuses("no epoch opens, no rank is replaced and no end is reached while a member has not stopped",
            [=]() mutable { x.enter(next); });
  refuses("a device has one rank", [=]() mutable { x.start_next_epoch({{1}, {1}}); });
}

TEST_CASE("epoch state: a stop waits for data that moves") {
  epoch_state x;
  refuses("a stop waits only for data that moves", [=]() mutable { x.defer_stop(); });
  x.start_moving();
  CHECK(!x.end_moving());
  x.start_moving();
  x.defer_stop();
  CHECK(x.stop_is_deferred());
  CHECK(x.end_moving());
  CHECK(!x.data_moves());
  CHECK(!x.stop_is_deferred());
}

TEST_CASE("epoch state: gives all reasons for an epoch, once") {
  epoch_state x;
  x.add_reason("rank 1 was lost");
  x.add_reason("device 3 took its place");
  CHECK(x.take_reason() == "rank 1 was lost; device 3 took its place");
  CHECK(x.take_reason().empty());
}

TEST_CASE("communicator end: a client that has asked for it hears of it once") {
  communicator_end x;
  x.begin("a test", errc::aborted);
  CHECK(!x.note_gone());
  x.ask_to_destroy();
  CHECK(x.note_gone());
  CHECK(!x.note_gone());
  refuses("an end begins once, for a reason", [=]() mutable { x.begin("again", errc::aborted); });
}

TEST_CASE("rank history: knows ranks by epoch, and which have been dropped since") {
  rank_history x{devices(3)};
  CHECK(x.rank_of({2}) == 1);
  CHECK(x.name_of({9}) == "device 0x9");
  x.remove({2});
  CHECK(!x.contains({2}));
  CHECK(x.known_rank_of({3}) == 2); // as when the epoch opened
  x.open({2});
  CHECK(x.latest_epoch() == epoch_number{2});
  CHECK(x.known_rank_of({3}) == 1);
  const auto before = x.in_with_dropped({1});
  REQUIRE(before.size() == 3);
  CHECK(before[1].dropped);
  CHECK(!before[2].dropped);
  CHECK(x.in({5}) == nullptr);
  for (uint64_t epoch = 3; epoch < 3 + rank_history::epochs_max; ++epoch)
    x.open({epoch});
  CHECK(x.in({1}) == nullptr);
  refuses("no epoch opens twice", [&] { x.open({2}); });
}

TEST_CASE("rank history: a lost device keeps its rank until a spare takes it, or it is kept") {
  rank_history x{devices(2)};
  x.mark_lost({2});
  CHECK(!x.contains({2}));
  CHECK(x.rank_of({2}) == 1);
  refuses("an epoch has no lost rank", [&] { x.open({2}); });
  x.mark_kept({2});
  CHECK(x.contains({2}));
  x.mark_lost({2});
  x.replace({2}, device(7).metadata);
  CHECK(x.rank_of({7}) == 1);
  CHECK(x.rank_of({2}) == 2);
  refuses("a spare takes the rank of a lost device", [&] { x.replace({7}, device(8).metadata); });
}

TEST_CASE("departures: a member that was asked leaves, is replaced, or stays") {
  departures x;
  x.ask(departures::reasons{{device_id{1}, "drained"}, {device_id{2}, "drained"}});
  CHECK(x.any_asked());
  CHECK(x.take_back({1}));
  CHECK(!x.take_back({1}));
  CHECK(x.take_asked().size() == 1);
  x.start_replacing({2}, "rank 1 leaves");
  CHECK(x.contains({2}));
  CHECK(x.end_replacing({2}) == "rank 1 leaves");
  CHECK(!x.end_replacing({2}));
  x.start_replacing({3}, "rank 2 leaves");
  x.ask(departures::reasons{{device_id{4}, "drained"}});
  CHECK(x.keep_all() == std::vector<device_id>{{3}, {4}});
  CHECK(!x.contains({3}));
}

TEST_CASE("spare search: asks for one spare at a time, and again for the next rank") {
  spare_search x;
  x.add({4});
  x.add({5});
  CHECK(x.ask({7}) == device_id{4});
  CHECK(!x.ask({8})); // the answer is due
  CHECK(x.knew_of({7}));
  CHECK(!x.knew_of({8}));
  CHECK(x.answered() == device_id{4});
  x.remove({4});
  CHECK(x.ask({9}) == device_id{5});
  refuses("a rank waits for one spare", [&] { x.add({5}); });
}

TEST_CASE("batch results: a spare lacks a result only if the batch has one") {
  batch_results x;
  x.start(true);
  auto op = sum_of(devices(2));
  op.group = operation::rank_groups;
  CHECK(!x.contains(op)); // the ranks' own call is not of the host's batch
  x.note_decided(op);
  x.note_spare({3});
  CHECK(x.without_results().empty());
  op.group = 0;
  x.note_decided(op);
  x.note_spare({3});
  CHECK(x.without_results() == std::set<device_id>{{3}});
  x.note_lost({3});
  CHECK(x.without_results().empty());
}

TEST_CASE("loss log: keeps the latest losses, and counts the others") {
  loss_log x;
  CHECK(x.empty());
  for (int i = 0; i < 18; ++i)
    x.add(std::to_string(i));
  CHECK(x.latest() == "17");
  CHECK(x.text().starts_with("after 2 earlier losses: 2; 3; "));
}
