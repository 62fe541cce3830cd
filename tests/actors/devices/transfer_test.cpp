#include "tests/support/actor_state.hpp"
#include "tests/support/simulated_client.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

/// A communicator of three devices. Device 0's memory starts with 200 counted bytes.
struct pair_of_devices {
  explicit pair_of_devices(bool offer_memory = true, proto::FailurePolicy policy = proto::SHRINK, uint64_t seed = 1)
    : cluster{[&] {
        simulation_options result;
        result.seed = seed;
        result.offer_memory = offer_memory;
        result.policy = policy;
        return result;
      }()} {
    comm = cluster.init(3);
    host.wait_for(host.copy_in(device(0), base(0), counted_bytes(200)));
  }

  uint64_t device(int rank) const { return comm.devices(rank).deviceid().value(); }
  uint64_t base(int rank) const { return comm.devices(rank).minmemaddr().value(); }

  uint64_t send(uint64_t bytes, uint64_t stream = 0) {
    auto sent = host.begin_send(device(0), base(0), bytes, 1, stream);
    REQUIRE(sent.error() == "");
    REQUIRE(sent.initiated());
    return sent.streamid().value();
  }

  std::string receive(uint64_t transfer, uint64_t bytes, uint64_t stream = 0, uint32_t from = 0) {
    return host.begin_receive(device(1), transfer, base(1), bytes, from, stream).error();
  }

  std::string received(uint64_t bytes) { return text_of(cluster.copy_out(device(1), base(1), bytes)); }
  std::string sent_bytes(uint64_t bytes) { return text_of(counted_bytes(bytes)); }

  void kill(int rank) { cluster.inject(device(rank), proto::FaultRequest{}); }

  simulated_cluster cluster;
  simulated_client host{cluster};
  gpu_sim::CommInitResponse comm;
};

} // namespace

TEST_CASE("transfer: begin returns at once, the bytes move in the background, no matter which end is first") {
  for (bool offer_memory : {true, false})
    for (uint64_t bytes : {0, 1, 64, 200}) {
      CAPTURE(offer_memory);
      CAPTURE(bytes);
      pair_of_devices x{offer_memory};
      auto transfer = x.send(bytes);
      CHECK(x.host.status(x.device(0), transfer).status() == gpu_sim::IN_PROGRESS);
      x.cluster.scheduler.advance_time(4s); // a receive that is posted late is waited for
      CHECK(x.receive(transfer, bytes) == "");
      CHECK(x.host.ended(x.device(1), transfer).error() == "");
      CHECK(x.host.ended(x.device(0), transfer).status() == gpu_sim::SUCCESS);
      CHECK(x.received(bytes) == x.sent_bytes(bytes));
    }
}

TEST_CASE("transfer: a send that no one receives and a receive that no one sends to fail with a sentence") {
  pair_of_devices x;
  auto transfer = x.send(64);
  auto began = time_of(x.cluster);
  CHECK(contains(x.host.ended(x.device(0), transfer).error(), "rank 1 has posted no BeginReceive for transfer"));
  CHECK(time_of(x.cluster) - began >= 5s);
  CHECK(x.receive(4711, 64) == "");
  CHECK(contains(x.host.ended(x.device(1), 4711).error(), "rank 0 has sent nothing for transfer 4711 within 5.0 s"));
  // Too late for the first: its bytes may have changed since.
  CHECK(x.receive(transfer, 64) == "");
  CHECK(x.host.ended(x.device(1), transfer).status() == gpu_sim::FAILED);
}

TEST_CASE("transfer: a receive posted as the send gives up ends like the send, no matter which was first") {
  int succeeded = 0;
  constexpr int seeds = 40;
  for (int seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    pair_of_devices x{seed % 2 == 0, proto::SHRINK, static_cast<uint64_t>(seed)};
    auto transfer = x.send(200);
    x.host.status(x.device(0), transfer);
    gpu_sim::BeginReceiveRequest receive;
    receive.mutable_streamid()->set_value(transfer);
    receive.mutable_recvbuffaddr()->set_value(x.base(1));
    receive.set_numbytes(200);
    auto begun = x.host.begin<gpu_sim::BeginReceiveResponse>(x.device(1), receive);
    for (int step = 0; step < seed % 12; ++step)
      x.cluster.step();
    x.cluster.scheduler.advance_time(5s); // the limit is in the mailbox, and is not looked at yet
    CHECK(x.host.wait_for(begun).error() == "");
    auto sent = x.host.ended(x.device(0), transfer).status();
    CHECK(sent == x.host.ended(x.device(1), transfer).status());
    if (sent == gpu_sim::SUCCESS)
      CHECK(x.received(200) == x.sent_bytes(200));
    succeeded += sent == gpu_sim::SUCCESS ? 1 : 0;
  }
  CHECK(succeeded > 0);
  CHECK(succeeded < seeds);
}

TEST_CASE("transfer: sizes that differ fail both ends and name both sizes") {
  pair_of_devices x;
  auto transfer = x.send(64);
  CHECK(x.receive(transfer, 65) == "");
  for (int rank : {0, 1}) {
    auto error = x.host.ended(x.device(rank), transfer).error();
    CHECK(contains(error, "sends 64 bytes"));
    CHECK(contains(error, "expects 65"));
  }
}

TEST_CASE("transfer: bytes from another rank than the receive names are not taken") {
  pair_of_devices x;
  auto transfer = x.send(64);
  CHECK(x.receive(transfer, 64, 0, 2) == "");
  for (int rank : {0, 1})
    CHECK(contains(x.host.ended(x.device(rank), transfer).error(), "names rank 2"));
}

TEST_CASE("transfer: what makes no sense is refused at once") {
  pair_of_devices x;
  auto max = x.comm.devices(0).maxmemaddr().value();
  CHECK(contains(x.host.begin_send(x.device(0), max, 1, 1).error(), "beyond its memory"));
  CHECK(contains(x.host.begin_send(x.device(0), x.base(0), 1, 3).error(), "has ranks 0 to 2, not 3"));
  CHECK(contains(x.host.begin_send(x.device(0), x.base(0), 1, 0).error(), "is device 0x1 itself"));
  CHECK(contains(x.host.begin_send(4, x.base(0), 1, 1).error(), "is in no communicator"));
  CHECK(contains(x.receive(0, 8), "stream id 0 names no transfer"));
  CHECK(contains(x.receive(x.host.default_stream(x.device(1)), 8), "names no transfer"));
  CHECK(x.receive(4711, 8) == "");
  CHECK(contains(x.receive(4711, 8), "knows transfer 4711 already"));
  CHECK(contains(x.host.status(x.device(0), 12345).error(), "has no stream 12345"));
}

TEST_CASE("transfer: bytes from outside fill a posted receive in order, and no more than it has room for") {
  pair_of_devices x;
  CHECK(contains(x.host.feed(x.device(1), 4711, "early"), "no receive is posted for transfer 4711"));
  CHECK(x.receive(4711, 6) == "");
  CHECK(x.host.feed(x.device(1), 4711, "abc") == "");
  CHECK(x.host.status(x.device(1), 4711).status() == gpu_sim::IN_PROGRESS);
  CHECK(x.host.feed(x.device(1), 4711, "def") == "");
  CHECK(x.host.ended(x.device(1), 4711).status() == gpu_sim::SUCCESS);
  CHECK(x.received(6) == "abcdef");
  CHECK(x.host.feed(x.device(1), 4711, "late") != "");
  CHECK(x.receive(4712, 6) == "");
  CHECK(x.host.feed(x.device(1), 4712, "abcd") == "");
  CHECK(contains(x.host.feed(x.device(1), 4712, "xyz"), "sends 7 bytes"));
  CHECK(contains(x.host.ended(x.device(1), 4712).error(), "expects 6"));
  CHECK(x.received(6) == "abcdef");
}

TEST_CASE("transfer: when a device dies the other end fails at once, under every policy and wherever it waits") {
  for (auto policy : {proto::SHRINK, proto::REPLACE, proto::ABORT})
    for (int victim : {0, 1})
      for (bool queued : {false, true}) {
        CAPTURE(policy);
        CAPTURE(victim);
        CAPTURE(queued);
        pair_of_devices x{true, policy};
        auto other = 1 - victim;
        auto stream = queued ? x.host.new_stream(x.device(other)) : 0;
        if (queued) // something before it that does not end soon
          REQUIRE(x.host.begin_receive(x.device(other), 99, x.base(other) + 512, 1, 2, stream).error() == "");
        uint64_t transfer = 4711;
        if (victim == 1)
          transfer = x.send(64, stream);
        else
          REQUIRE(x.receive(transfer, 64, stream) == "");
        auto began = time_of(x.cluster);
        x.kill(victim);
        if (queued) {
          for (int i = 0; i < 1000 && !x.cluster.scheduler.jobs.empty(); ++i)
            x.cluster.step();
          REQUIRE(x.host.feed(x.device(other), 99, "x") == "");
        }
        CHECK(contains(x.host.ended(x.device(other), transfer).error(), "the other end of transfer"));
        CHECK(time_of(x.cluster) - began < 1s);
      }
}

TEST_CASE("transfer: a sender that dies while its bytes travel in messages fails the receiver at once") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    pair_of_devices x{false, proto::SHRINK, seed};
    auto transfer = x.host.begin_send(x.device(0), x.base(0), 4096, 1).streamid().value();
    REQUIRE(x.receive(transfer, 4096) == "");
    auto began = time_of(x.cluster);
    x.kill(0);
    auto end = x.host.ended(x.device(1), transfer);
    CHECK((end.status() == gpu_sim::SUCCESS || contains(end.error(), "the other end of transfer")));
    CHECK(time_of(x.cluster) - began < 1s);
  }
}

TEST_CASE("transfer: transfers of one stream keep their order") {
  pair_of_devices x;
  auto out = x.host.new_stream(x.device(0)), in = x.host.new_stream(x.device(1));
  auto first = x.send(8, out), second = x.send(8, out);
  CHECK(x.receive(second, 8) == ""); // a stream of its own: it may not overtake the first on the sender's
  CHECK(x.host.status(x.device(1), second).status() == gpu_sim::IN_PROGRESS);
  CHECK(x.receive(first, 8, in) == "");
  CHECK(x.host.ended(x.device(1), first).error() == "");
  CHECK(x.host.ended(x.device(1), second).error() == "");
}

TEST_CASE("transfer: a receiver that reads longer than the sender waits is not given up") {
  simulation_options how;
  how.slice_bytes = 8;
  simulated_cluster cluster{how};
  simulated_client host{cluster};
  auto comm = cluster.init(2);
  auto from = comm.devices(0), to = comm.devices(1);
  host.wait_for(host.copy_in(1, from.minmemaddr().value(), counted_bytes(40, 1)));
  auto sent = host.begin_send(from.deviceid().value(), from.minmemaddr().value(), 40, 1);
  auto transfer = sent.streamid().value();
  cluster.scheduler.advance_time(4900ms);
  REQUIRE(host.begin_receive(to.deviceid().value(), transfer, to.minmemaddr().value(), 40, 0).error() == "");
  // The receiver has begun; the sender's limit passes before it is through.
  auto first = state_of<device_state>(device_of(cluster, to.deviceid().value())).memory->at(to.minmemaddr().value(), 1);
  while (first->front() == std::byte{0})
    REQUIRE(cluster.step());
  cluster.scheduler.advance_time(200ms);
  CHECK(host.ended(to.deviceid().value(), transfer).error() == "");
  CHECK(host.ended(from.deviceid().value(), transfer).error() == "");
}

TEST_CASE("transfer: a device knows its ranks when CommInit is answered") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    simulation_options how;
    how.seed = seed;
    simulated_cluster cluster{how};
    simulated_client host{cluster};
    auto comm = cluster.init(3);
    CHECK(host.begin_send(2, comm.devices(1).minmemaddr().value(), 8, 0).error() == "");
  }
}
