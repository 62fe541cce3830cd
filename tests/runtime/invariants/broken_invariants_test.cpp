// Invariants that are broken on purpose: the process ends with the sentence, and does not go on with a wrong state.
#include "messages/errc.hpp"
#include "runtime/coordination/pending_calls.hpp"
#include "runtime/coordination/rendezvous_desk.hpp"
#include "runtime/coordination/spare_desk.hpp"
#include "runtime/epochs/epoch_change.hpp"
#include "runtime/mailbox/shared_mailbox.hpp"
#include "runtime/memory/host_copies.hpp"
#include "runtime/memory/range_allocator.hpp"
#include "runtime/operations/call_desk.hpp"
#include "runtime/operations/shared_memory_execution.hpp"
#include "runtime/schedule/schedule_run.hpp"
#include "tests/runtime/epochs/epoch_operands.hpp"
#include "tests/runtime/invariants/broken_invariant.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <string>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::epoch_tests;

namespace {

/// Whether a process that does this aborts with this sentence.
void breaks(const std::string& sentence, const std::function<void()>& what) {
  const auto log = log_of_abort(what);
  CHECK_MESSAGE(contains(log, "an invariant is broken: " + sentence + " ("), log);
}

epoch_change three_members() {
  return {{7}, proto::REPLACE, devices(3)};
}

operation_queue one_operation() {
  operation_queue queue{{7}};
  queue.add(sum_of(devices(2)), 0);
  return queue;
}

schedule_run one_round() {
  schedule_run run;
  const auto problem = run.begin([] {
    schedule result;
    result.rounds = 1;
    result.steps.push_back({});
    return result;
  });
  REQUIRE_FALSE(problem);
  return run;
}

proto::RendezvousRequest first_of_two() {
  proto::RendezvousRequest result;
  result.set_group("world");
  result.set_world_size(2);
  result.set_device_id(5);
  return result;
}

} // namespace

TEST_CASE("broken invariants: epochs") {
  breaks("data that has moved was moving", [] { three_members().data_moved({1}); });
  breaks("members leave when nothing is under way", [] { three_members().let_leave(); });
  breaks("a communicator is let go as often as it was held", [] { three_members().let_go(); });
  breaks("a spare answers the open request", [] { three_members().spare({}, {2}); });
  breaks("a spare is refused only if one was asked for", [] { three_members().no_spare("a test"); });
  breaks("an end has a reason", [] { three_members().abort(""); });
}

TEST_CASE("broken invariants: the state of the object that found out is in the log") {
  const auto log = log_of_abort([] { three_members().let_go(); });
  CHECK_MESSAGE(contains(log, "state: communicator 7 is active in epoch 1 (open: 1), ranks [0x1 0x2 0x3]"), log);
}

TEST_CASE("broken invariants: the queue of operations") {
  breaks("an operation is numbered once", [] {
    auto queue = one_operation();
    auto again = queue.in_flight().front();
    queue.add(again, 0);
  });
  breaks("an operation is cancelled with an error", [] {
    auto queue = one_operation();
    queue.cancel(queue.in_flight().front(), {});
  });
  breaks("a spare is another device than the lost one", [] {
    auto queue = one_operation();
    queue.replace({1}, memory_size, device(1).metadata, [](auto&) { return caf::error{}; });
  });
}

TEST_CASE("broken invariants: calls of ranks") {
  breaks("epochs rise", [] {
    admission calls;
    calls.set_ranks({2}, {{1}, {2}});
    calls.set_ranks({2}, {{1}, {2}});
  });
  breaks("a device has one rank", [] { admission{}.set_ranks({1}, {{1}, {1}}); });
  breaks("only a call that is open expires", [] { call_desk{{7}}.expire(3, {1}, "", {}); });
  breaks("an operation begins once", [] {
    call_desk desk{{7}};
    const std::vector<call_part> parts{{1, {1}, {1}, {}}};
    desk.began({4}, parts);
    desk.began({4}, parts);
  });
}

TEST_CASE("broken invariants: memory and schedules") {
  breaks("a memory's end is not below its beginning", [] { range_allocator{5, 4}; });
  breaks("a copied part lies within its block", [] { host_copies{1000}.remember_part({1}, 64, byte_block{}, 0, 8); });
  breaks("a round starts once", [] {
    auto run = one_round();
    (void)run.start_round();
    (void)run.start_round();
  });
  breaks("a round ends with the last of its steps", [] { one_round().next_round(); });
  breaks("a shared-memory operation has the buffers of every rank", [] {
    shared_memory_operation without{
      proto::ALL_REDUCE, {.world_size = 2, .count = 1}, *reducer::of(proto::FLOAT32, gpu_sim::SUM), {}, {}, {}};
    shared_memory_execution{std::move(without), 64};
  });
  breaks("a rank has its place in the mailbox", [] {
    alignas(64) static std::byte memory[64 << 10];
    shared_mailbox{memory, 2, 64, 2};
  });
}

TEST_CASE("broken invariants: what the coordinator waits for") {
  breaks("a group forms when all of its ranks have come", [] {
    rendezvous_desk desk;
    (void)desk.arrived(first_of_two(), 10);
    desk.formed("world", communicator_id{1});
  });
  breaks("a spare is searched for once", [] {
    device_registry devices;
    spare_desk desk{devices};
    desk.asked(1, {});
    desk.asked(1, {});
  });
  breaks("a call that waits can be failed", [] {
    pending_calls<device_id> calls;
    calls.begun({1}, {}, nullptr);
  });
}
