#include "tests/support/simulated_client.hpp"
#include "tests/support/trials/all_reduce_trial.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

/// Two devices in a communicator, and streams on the first of them. A receive that no one sends to blocks a stream
/// until the test feeds it.
struct streams {
  streams() {
    comm = cluster.init(2);
    device = comm.devices(0).deviceid().value();
    base = comm.devices(0).minmemaddr().value();
  }

  void block(uint64_t stream, uint64_t transfer) {
    REQUIRE(host.begin_receive(device, transfer, base, 1, 1, stream).error() == "");
  }

  void unblock(uint64_t transfer) { REQUIRE(host.feed(device, transfer, "x") == ""); }

  bool idle(uint64_t stream) { return host.status(device, stream).status() != gpu_sim::IN_PROGRESS; }

  simulated_cluster cluster{{}};
  simulated_client host{cluster};
  gpu_sim::CommInitResponse comm;
  uint64_t device = 0;
  uint64_t base = 0;
};

} // namespace

TEST_CASE("event: waiting for one that was never recorded is no wait") {
  streams x;
  auto a = x.host.new_stream(x.device);
  CHECK(x.host.wait_event(x.device, 7, a) == "");
  CHECK(x.idle(a));
}

TEST_CASE(
  "event: a stream that waits goes on when the other has recorded, and waits for the latest record called before") {
  streams x;
  auto first = x.host.new_stream(x.device), second = x.host.new_stream(x.device), waiter = x.host.new_stream(x.device);
  x.block(first, 100);
  x.block(second, 200);
  CHECK(x.host.record(x.device, 7, first) == "");
  CHECK(x.host.wait_event(x.device, 7, waiter) == "");
  CHECK(x.host.record(x.device, 7, second) == "");
  x.unblock(200); // a later record is made first: it is not the one that is waited for
  CHECK(x.idle(second));
  CHECK_FALSE(x.idle(waiter));
  x.unblock(100);
  CHECK(x.host.wait_for(x.host.synchronize(x.device, waiter)).error() == "");
  CHECK(x.idle(waiter));
  // Both are made: the event is forgotten, and is not waited for.
  CHECK(x.host.wait_event(x.device, 7, waiter) == "");
  CHECK(x.idle(waiter));
}

TEST_CASE("event: where the latest record is made already, an earlier one that is not is no one's affair") {
  streams x;
  auto blocked = x.host.new_stream(x.device), source = x.host.new_stream(x.device),
       waiter = x.host.new_stream(x.device);
  x.block(blocked, 100);
  CHECK(x.host.record(x.device, 7, blocked) == "");
  CHECK(x.host.record(x.device, 7, source) == "");
  CHECK(x.host.wait_for(x.host.synchronize(x.device, source)).error() == "");
  auto began = time_of(x.cluster);
  CHECK(x.host.wait_event(x.device, 7, waiter) == "");
  CHECK(x.host.wait_for(x.host.synchronize(x.device, waiter)).error() == "");
  CHECK(time_of(x.cluster) == began);
  // A third one, on the blocked stream, is the latest from now on.
  CHECK(x.host.record(x.device, 7, blocked) == "");
  CHECK(x.host.wait_event(x.device, 7, waiter) == "");
  CHECK_FALSE(x.idle(waiter));
  x.unblock(100);
  CHECK(x.host.wait_for(x.host.synchronize(x.device, waiter)).error() == "");
  CHECK(time_of(x.cluster) == began);
}

TEST_CASE("event: all that wait for a record go on when it is made, and none that waits for another event's") {
  streams x;
  auto first = x.host.new_stream(x.device), second = x.host.new_stream(x.device), other = x.host.new_stream(x.device);
  auto a = x.host.new_stream(x.device), b = x.host.new_stream(x.device), c = x.host.new_stream(x.device);
  x.block(first, 100);
  x.block(second, 200);
  x.block(other, 300);
  CHECK(x.host.record(x.device, 7, first) == "");
  CHECK(x.host.record(x.device, 8, other) == "");
  CHECK(x.host.wait_event(x.device, 7, a) == "");
  CHECK(x.host.wait_event(x.device, 7, b) == "");
  CHECK(x.host.wait_event(x.device, 8, c) == "");
  CHECK(x.host.record(x.device, 7, second) == "");
  x.unblock(100);
  CHECK(x.host.wait_for(x.host.synchronize(x.device, a)).error() == "");
  CHECK(x.host.wait_for(x.host.synchronize(x.device, b)).error() == "");
  CHECK_FALSE(x.idle(c));
  CHECK(x.host.wait_event(x.device, 7, a) == ""); // for the second record
  CHECK_FALSE(x.idle(a));
  x.unblock(200);
  CHECK(x.host.wait_for(x.host.synchronize(x.device, a)).error() == "");
  CHECK_FALSE(x.idle(c));
  x.unblock(300);
  CHECK(x.host.wait_for(x.host.synchronize(x.device, c)).error() == "");
}

TEST_CASE("event: a record that is made while the wait is still queued counts") {
  streams x;
  auto source = x.host.new_stream(x.device), waiter = x.host.new_stream(x.device);
  x.block(source, 100);
  x.block(waiter, 200);
  CHECK(x.host.record(x.device, 7, source) == "");
  CHECK(x.host.wait_event(x.device, 7, waiter) == "");
  x.unblock(100);
  CHECK(x.idle(source));
  x.unblock(200);
  CHECK(x.host.wait_for(x.host.synchronize(x.device, waiter)).error() == "");
}

TEST_CASE("event: a wait ends at its limit, says so, and the stream goes on") {
  streams x;
  auto waiter = x.host.new_stream(x.device);
  auto stuck = x.host.new_stream(x.device);
  for (uint64_t i = 0; i < 10; ++i) // ten receives of 5 s each: longer than an event wait waits
    x.block(stuck, 100 + i);
  CHECK(x.host.record(x.device, 7, stuck) == "");
  CHECK(x.host.wait_event(x.device, 7, waiter) == "");
  auto waited = x.host.synchronize(x.device, waiter, 60s);
  CHECK(contains(x.host.wait_for(waited).error(), "event 7 was not recorded within 30.0 s"));
  CHECK(x.host.wait_for(x.host.copy(x.device, x.base, x.base + 8, 8, waiter)).success());
  CHECK(time_of(x.cluster) > 30s);
}

TEST_CASE("event: an unknown stream is named, with those that exist") {
  streams x;
  CHECK(contains(x.host.record(x.device, 7, 12345), "has no stream 12345; it has "));
  CHECK(contains(x.host.wait_event(x.device, 7, 12345), "has no stream 12345; it has "));
}
