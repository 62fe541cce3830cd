// What a stream asks before it goes on: faults on purpose, and epochs.
#include "actors/streams/fault_gate.hpp"
#include "actors/streams/known_epochs.hpp"
#include "actors/streams/received_bytes.hpp"
#include "messages/cluster.pb.h"
#include "tests/runtime/invariants/broken_invariant.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

proto::FaultRequest armed_fault(uint32_t step) {
  proto::FaultRequest result;
  result.set_kind(proto::FaultRequest::HANG);
  result.set_at_step(true);
  result.set_step(step);
  return result;
}

} // namespace

TEST_CASE("fault gate: an armed fault strikes once, at its step") {
  fault_gate x;
  CHECK(!x.is_set());
  x.arm(armed_fault(2));
  CHECK(x.is_set());
  CHECK(!x.take_at(1));
  CHECK(x.take_at(2));
  CHECK(!x.take_at(2));
  CHECK(!x.is_set());
}

TEST_CASE("fault gate: an operation without rounds suffers a fault of any step after the first") {
  fault_gate x;
  x.arm(armed_fault(0));
  CHECK(!x.take_after_start());
  x.arm(armed_fault(7));
  CHECK(x.take_after_start());
  x.arm(armed_fault(7));
  x.disarm();
  CHECK(!x.take_at(7));
}

TEST_CASE("fault gate: a slow stream stays slow until the delay is removed, a closed one closed until it is opened") {
  fault_gate x;
  x.slow(3ms);
  CHECK(x.is_slow());
  CHECK(x.delay() == 3ms);
  CHECK(x.is_set());
  x.slow(0ms);
  CHECK(!x.is_set());
  x.close();
  CHECK(x.is_closed());
  x.open();
  CHECK(!x.is_closed());
  const auto log = log_of_abort([] { fault_gate{}.open(); });
  CHECK_MESSAGE(contains(log, "a gate is opened that was closed"), log);
}

TEST_CASE("known epochs: messages of older epochs are stale, of ended communicators all") {
  known_epochs x;
  CHECK(!x.is_stale({1}, {5}));
  CHECK(x.enter({1}, {5}));
  CHECK(!x.enter({1}, {5}));
  CHECK(x.is_stale({1}, {4}));
  CHECK(!x.is_stale({2}, {4}));
  CHECK(x.enter({1}, {UINT64_MAX}));
  x.forget({1});
  CHECK(x.is_stale({1}, {6}));
  CHECK(x.stale_messages() == 2);
  const auto log = log_of_abort([&] { x.enter({1}, {5}); });
  CHECK_MESSAGE(contains(log, "epochs rise"), log);
}

TEST_CASE("received bytes: are counted by route") {
  received_bytes x;
  x.add("memory", 10);
  x.add("link", 5);
  x.add("memory", 1);
  CHECK(x.total() == 16);
  proto::RankReport report;
  x.write_to(report);
  REQUIRE(report.received_size() == 2);
  CHECK(report.received(0).route() == "memory");
  CHECK(report.received(0).bytes() == 11);
  x.clear();
  CHECK(x.total() == 0);
}
