#include "tests/support/trials/grouped_calls.hpp"

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

using proto::RankReport;

/// Operations that are not packed: a ring's sums of floats depend on their place.
struct series_calls : grouped_calls {
  using grouped_calls::grouped_calls;

  void ring_sums(uint64_t calls, const std::function<void(uint64_t, proto::CollectiveRequest&)>& change = {},
                 const std::function<void()>& before_end = {}) {
    group(
      calls,
      [&](uint64_t i, proto::CollectiveRequest& y) {
        y.mutable_collective()->set_algorithm("ring");
        if (change)
          change(i, y);
      },
      before_end);
  }

  std::string ended() { return cluster.wait(comm.commid()).error(); }

  /// Whether no operation has ended before all walks have.
  bool ended_together() {
    auto records = cluster.history();
    auto end = std::find_if(records.begin(), records.end(), [](auto& y) { return y.has_operation_ended(); });
    return end != records.end() && std::none_of(end, records.end(), [](auto& y) { return y.has_rank_ended(); });
  }

  /// How many reports say that a rank has committed: one for each of a series.
  size_t series(uint32_t rank) {
    auto records = cluster.history();
    size_t result = 0;
    auto reported = UINT64_MAX;
    for (auto& x : records)
      if (x.has_rank_ended() && x.rank_ended().phase() == RankReport::COMMITTED
          && x.rank_ended().device_id() == device(rank))
        result += x.time_ns() != std::exchange(reported, x.time_ns()) ? 1 : 0;
    return result;
  }
};

/// How often a rank reports of two calls, of which the second one is changed.
size_t series_of_two(const std::function<void(series_calls&, uint64_t, proto::CollectiveRequest&)>& change) {
  series_calls x{7};
  x.cluster.inject(x.device(1), fault(proto::FaultRequest::SLOW, {}, std::chrono::milliseconds{1})); // apart in time
  x.ring_sums(2, [&](uint64_t i, proto::CollectiveRequest& y) { change(x, i, y); });
  CHECK(x.ended() == "");
  CHECK(x.walks(2) == 2);
  return x.series(2);
}

template <class List>
void set_all(List& list, const std::function<uint64_t(uint32_t)>& address) {
  list.Clear();
  for (uint32_t rank = 0; rank < 4; ++rank)
    list.Add(address(rank));
}

} // namespace

TEST_CASE("series: what is not packed is walked by itself, reported together, and right") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    series_calls x{seed, seed % 2 == 0, seed % 3 == 0};
    x.ring_sums(20);
    CHECK(x.ended() == "");
    for (uint32_t rank = 0; rank < 4; ++rank) {
      CHECK(x.read(rank, 64, 40) == x.sums(20));
      CHECK(x.walks(rank) == 20);
    }
    CHECK(x.ended_together());
  }
}

TEST_CASE("series: each walk of a rank has its own time and bytes in the journal") {
  series_calls x{3};
  x.ring_sums(3);
  CHECK(x.ended() == "");
  uint64_t before = 0, sequence = 0;
  for (auto& y : x.cluster.history())
    if (y.has_rank_ended() && y.rank_ended().device_id() == x.device(0)) {
      CHECK(y.rank_ended().sequence() == ++sequence);
      CHECK(y.rank_ended().started_ns() >= before);
      CHECK(y.rank_ended().bytes_received() > 0);
      before = y.rank_ended().ended_ns();
    }
  CHECK(sequence == 3);
}

TEST_CASE("series: packed operations, others and several kinds go in one") {
  series_calls x{5};
  x.group(6, [](uint64_t i, proto::CollectiveRequest& y) {
    constexpr const char* algorithms[] = {"tree", "tree", "ring", "ring", "butterfly", "butterfly"};
    y.mutable_collective()->set_algorithm(algorithms[i]);
  });
  CHECK(x.ended() == "");
  CHECK(x.read(3, 64, 12) == x.sums(6));
  CHECK(x.ended_together());
  CHECK(x.walks(0) == 4); // two pairs are packed
}

TEST_CASE("series: not what reads, or undoes, what another one of it makes or reads") {
  CHECK(series_of_two([](auto&, auto, auto&) {}) == 1);
  CHECK(series_of_two([](auto& x, auto, auto& y) { // one output for both
          set_all(*y.mutable_outputs(), [&](auto rank) { return x.address(rank, 64); });
        })
        == 1);
  CHECK(series_of_two([](auto& x, auto i, auto& y) { // the first one's output is its input
          if (i == 1)
            set_all(*y.mutable_inputs(), [&](auto rank) { return x.address(rank, 64); });
        })
        == 2);
  CHECK(series_of_two([](auto& x, auto i, auto& y) { // its output is the first one's input
          if (i == 1)
            set_all(*y.mutable_outputs(), [&](auto rank) { return x.address(rank, 0); });
        })
        == 2);
  CHECK(series_of_two([](auto& x, auto i, auto& y) { // its output is what the first one has in place
          if (i == 0)
            y.clear_outputs();
          else
            set_all(*y.mutable_outputs(), [&](auto rank) { return x.address(rank, 0); });
        })
        == 2);
  CHECK(series_of_two([](auto&, auto, auto& y) { y.clear_outputs(); }) == 1); // each in its own place
}

TEST_CASE("series: outputs that lie over each other are the last one's") {
  series_calls x{11};
  x.ring_sums(3, [&](uint64_t, proto::CollectiveRequest& y) {
    set_all(*y.mutable_outputs(), [&](auto rank) { return x.address(rank, 64); });
  });
  CHECK(x.ended() == "");
  for (uint32_t rank = 0; rank < 4; ++rank)
    CHECK(x.read(rank, 64, 2) == floats{75, 90});
}

TEST_CASE("series: a rank that dies at any step of any walk leaves one group's sums, in place or not, and inputs") {
  for (bool in_place : {false, true})
    for (uint32_t step = 0; step <= 8; ++step)
      for (uint64_t walk = 0; walk < 3; ++walk) {
        CAPTURE(in_place);
        CAPTURE(step);
        CAPTURE(walk);
        series_calls x{step + 1, step % 2 == 0, false};
        auto change = [&](uint64_t i, proto::CollectiveRequest& y) {
          y.mutable_collective()->set_algorithm(i == walk ? "ring"
                                                          : "one_shot"); // only the ring has that number of rounds
          if (in_place)
            y.clear_outputs();
        };
        x.ring_sums(3, change, [&] { x.cluster.inject(x.device(2), fault(proto::FaultRequest::KILL, step)); });
        CHECK(x.ended() == "");
        auto at = in_place ? 0u : 64u;
        auto found = x.read(0, at, 6);
        CHECK((found == x.sums(3, 11) || found == x.sums(3, 15)));
        for (uint32_t rank : {1, 3}) {
          CHECK(x.read(rank, at, 6) == found);
          if (!in_place)
            CHECK(x.read(rank, 0, 2) == floats{static_cast<float>(1 << rank), static_cast<float>(2 << rank)});
        }
      }
}

TEST_CASE("series: one that breaks fails all of them, and leaves what is in place as it was") {
  series_calls x{2};
  auto hangs = fault(proto::FaultRequest::SLOW, {}, std::chrono::milliseconds{300});
  x.cluster.inject(x.device(1), hangs);
  x.ring_sums(3, [](uint64_t i, auto& y) {
    y.clear_outputs();
    y.set_timeout_ns(i == 1 ? 500'000'000 : 0);
  });
  CHECK(contains(x.ended(), "operation #2 has not ended within its limit"));
  CHECK(x.read(2, 0, 6) == floats{4, 8, 12, 16, 20, 24});
  x.ring_sums(1); // and the memory that was set aside for it is there again
}

TEST_CASE("series: sends between several pairs of ranks of a group do not wait for each other's end") {
  series_calls x{8};
  x.group(2, [&](uint64_t i, proto::CollectiveRequest& y) {
    y.mutable_collective()->set_kind(proto::SEND_RECV);
    y.mutable_collective()->set_algorithm("direct");
    y.mutable_collective()->set_root(static_cast<uint32_t>(2 * i));
    y.mutable_collective()->set_peer(static_cast<uint32_t>(2 * i + 1));
  });
  CHECK(x.ended() == "");
  CHECK(x.read(1, 64, 2) == floats{1, 2});
  CHECK(x.read(3, 66, 2) == floats{12, 16});
  CHECK(x.ended_together());
}
