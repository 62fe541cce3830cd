#include "runtime/journal/operation_story.hpp"

#include "tests/support/records.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

std::string story(const std::vector<proto::Record>& records, uint64_t sequence = 5) {
  return story_of(records, {communicator_id{7}, sequence_number{sequence}}, std::chrono::seconds{0});
}

proto::Record verdict_at(uint64_t ms) {
  auto record = record_at(ms);
  auto& x = *record.mutable_verdict();
  x.set_comm_id(7);
  x.set_kind(proto::Verdict::HUNG);
  x.set_evidence("3 of its last 5 answers were late");
  x.set_sequence(5);
  x.set_operation("all_reduce");
  x.set_time_ns(record.time_ns() - 3'000'000);
  x.add_culprits()->set_rank(2);
  x.mutable_culprits(0)->set_device_id(3);
  auto& wait = *x.add_waits();
  wait.set_rank(1);
  wait.add_waits_for(2);
  wait.set_what("waiting for rank 2's block at round 3 of 6");
  x.mutable_outcome()->set_epoch(2);
  x.mutable_outcome()->set_ranks(3);
  x.mutable_outcome()->add_rerun(5);
  return record;
}

proto::Record epoch_at(uint64_t ms) {
  auto record = record_at(ms);
  auto& x = *record.mutable_epoch_opened();
  x.set_comm_id(7);
  x.set_epoch(2);
  for (uint64_t device : {1, 2, 4})
    x.add_device_ids(device);
  x.add_rerun(5);
  return record;
}

} // namespace

TEST_CASE("operation story: one that ran at once") {
  CHECK(story(whole_operation(7, 5))
          .starts_with("operation 5 of communicator 7: ring all_reduce of 512 float64, sum, 4 KiB a rank\n"
                       "         +0  at 00:00:00.000 on 2026-01-01: the host called it for all ranks\n"));
  CHECK(contains(story(whole_operation(7, 5)), "attempt 1 starts in epoch 1 over 4 ranks"));
  CHECK(contains(story(whole_operation(7, 5)), "4 of 4 ranks have their result: rank 0 took 1.25 ms"));
  CHECK(contains(story(whole_operation(7, 5)), "it succeeded in epoch 1, at attempt 1"));
}

TEST_CASE("operation story: a fault, its verdict, the new epoch and the second attempt, with times") {
  auto end = operation_ended(7, 5, gpu_sim::SUCCESS, 900);
  end.mutable_operation_ended()->set_attempts(2);
  end.mutable_operation_ended()->set_epoch(2);
  const auto text = story({operation_enqueued(7, 5, 0), operation_started(7, 5, 1, 1), epoch_at(810), verdict_at(810),
                           operation_started(7, 5, 2, 811), end});
  for (auto* part :
       {"VERDICT hung: rank 2 (device 0x3) hangs: 3 of its last 5 answers were late",
        "rank 1 waited for rank 2: waiting for rank 2's block at round 3 of 6",
        "The group goes on in epoch 2 with 3 ranks; operation #5 runs again",
        "epoch 2 opens over 3 ranks; it runs again", "attempt 2 starts in epoch 2",
        "it succeeded in epoch 2, at attempt 2",
        "it took 900 ms: 1 ms until it started, 809 ms attempt 1, 1 ms between attempts, 89 ms attempt 2"}) {
    CAPTURE(part);
    CHECK_MESSAGE(contains(text, part), text);
  }
  CHECK(std::count(text.begin(), text.end(), '\n') <= 24); // one screen
}

TEST_CASE("operation story: other operations and communicators are left out") {
  auto records = whole_operation(7, 5);
  const auto alone = story(records);
  for (auto& more : {whole_operation(7, 6), whole_operation(8, 5)})
    records.insert(records.end(), more.begin(), more.end());
  CHECK(story(records) == alone);
  CHECK(story(records, 9).empty());
}

TEST_CASE("operation story: one that never started, one that failed, and one that has not ended") {
  CHECK(story({verdict_at(5)}).starts_with("operation 5 of communicator 7: it never started\n"));
  CHECK(contains(story({operation_enqueued(7, 5, 0), operation_ended(7, 5, gpu_sim::FAILED, 5)}),
                 "it FAILED: device 0x3 died"));
  CHECK(contains(story({operation_enqueued(7, 5, 0), operation_started(7, 5, 1, 1)}),
                 "it has not ended, as far as the journal goes"));
}
