#include "runtime/health/verdict_text.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

namespace {

using proto::Verdict;

void add_culprit(Verdict& to, uint32_t rank, const char* node, const char* call = "") {
  auto& x = *to.add_culprits();
  x.set_rank(rank);
  x.set_device_id(rank + 1);
  x.set_node(node);
  x.set_host("hostb");
  x.set_pid(812);
  x.set_call(call);
}

Verdict verdict_of(Verdict::Kind kind, const char* evidence) {
  Verdict x;
  x.set_kind(kind);
  x.set_evidence(evidence);
  x.set_epoch(1);
  return x;
}

void add_wait(Verdict& to, uint32_t rank, std::initializer_list<uint32_t> others) {
  auto& x = *to.add_waits();
  x.set_rank(rank);
  for (auto other : others)
    x.add_waits_for(other);
}

} // namespace

TEST_CASE("verdict text: culprit, kind, evidence, operation and step, who waited for whom, and what was done") {
  auto x = verdict_of(Verdict::CRASHED, "killed on request");
  add_culprit(x, 2, "node-2");
  x.set_sequence(17);
  x.set_operation("all_reduce");
  x.set_round(3);
  x.set_rounds(6);
  add_wait(x, 0, {1});
  add_wait(x, 1, {2});
  add_wait(x, 3, {2});
  auto& done = *x.mutable_outcome();
  done.set_epoch(2);
  done.set_ranks(3);
  done.add_rerun(17);
  CHECK(finding_of(x)
        == "rank 2 (device 0x3, node-2 on hostb, pid 812) crashed: killed on request; all_reduce #17 was at round 3 of "
           "6: ranks 1, 3 waited for rank 2, rank 0 for rank 1");
  CHECK(text_of(x) == finding_of(x) + ". The group goes on in epoch 2 with 3 ranks; operation #17 runs again");
}

TEST_CASE("verdict text: ranks of one process are named together, those of others apart") {
  auto x = verdict_of(Verdict::UNREACHABLE, "a switch is off");
  for (uint32_t rank : {0, 1, 2, 3})
    add_culprit(x, rank, "node-1");
  add_culprit(x, 5, "node-2");
  CHECK(finding_of(x)
        == "ranks 0 to 3 (devices 0x1 to 0x4, node-1 on hostb, pid 812) and rank 5 (device 0x6, node-2 on hostb, pid "
           "812) cannot reach each other: a switch is off");
  x.mutable_culprits()->RemoveLast();
  CHECK(finding_of(x)
        == "ranks 0 to 3 (devices 0x1 to 0x4, node-1 on hostb, pid 812) are unreachable: a switch is off");
}

TEST_CASE("verdict text: a device of the coordinator's process has no place") {
  auto x = verdict_of(Verdict::HUNG, "3 of its last 5 answers were late");
  add_culprit(x, 1, "node-1");
  x.mutable_culprits(0)->set_local(true);
  CHECK(finding_of(x) == "rank 1 (device 0x2) hangs: 3 of its last 5 answers were late");
}

TEST_CASE("verdict text: calls that do not match, and calls that were never made") {
  auto odd = verdict_of(Verdict::CALLED_ELSE, "call: all_reduce on rank 0; broadcast on rank 1");
  add_culprit(odd, 1, "node-1");
  odd.set_operation("all_reduce");
  odd.set_sequence(4);
  CHECK(
    text_of(odd)
    == "rank 1 (device 0x2, node-1 on hostb, pid 812) called something else than the others in all_reduce #4: call: "
       "all_reduce on rank 0; broadcast on rank 1. The call failed on every rank that made it, and nothing was moved");
  auto absent = verdict_of(Verdict::NEVER_CALLED, "waiting for 2.0 s");
  add_culprit(absent, 1, "node-1", ", and waits in communicator 3 for barrier #2");
  add_culprit(absent, 2, "node-2");
  absent.set_operation("all_reduce");
  absent.set_sequence(4);
  add_wait(absent, 0, {1, 2});
  CHECK(
    finding_of(absent)
    == "rank 1 (device 0x2, node-1 on hostb, pid 812) has not called all_reduce #4, and waits in communicator 3 for "
       "barrier #2, rank 2 (device 0x3, node-2 on hostb, pid 812) has not called all_reduce #4; waiting for 2.0 s; "
       "rank 0 waited for ranks 1, 2");
}

TEST_CASE("verdict text: what was done") {
  auto x = verdict_of(Verdict::SLOW, "12 times slower");
  add_culprit(x, 1, "node-1");
  x.mutable_outcome();
  CHECK(text_of(x).ends_with(" is slow: 12 times slower. It stays in the group"));
  x.set_kind(Verdict::CRASHED);
  x.mutable_outcome()->set_ended(true);
  x.mutable_outcome()->add_failed(3);
  x.mutable_outcome()->add_failed(4);
  CHECK(text_of(x).ends_with(". The communicator has ended; operations #3, #4 failed"));
  x.mutable_outcome()->add_failed(5);
  CHECK(text_of(x).ends_with("; operations #3 to #5 failed"));
  x.mutable_outcome()->mutable_failed()->RemoveLast();
  x.mutable_outcome()->set_ended(false);
  x.mutable_outcome()->set_epoch(2);
  x.mutable_outcome()->set_ranks(1);
  x.mutable_outcome()->add_spares(9);
  CHECK(text_of(x).ends_with(
    ". Device 0x9 took the place; the group goes on in epoch 2 with 1 rank; operations #3, #4 failed"));
  CHECK(finding_of(verdict_of(Verdict::UNKNOWN, "no progress for 30.0 s")) == "no progress for 30.0 s");
}
