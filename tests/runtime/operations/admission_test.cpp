#include "runtime/operations/admission.hpp"
#include "runtime/operations/rank_calls.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

using part = proto::RankCall::Part;
using parts = std::vector<part>;

constexpr device_id devices_of_four[] = {{10}, {11}, {12}, {13}};

part collective(proto::CollectiveKind kind = proto::ALL_REDUCE, uint64_t count = 8) {
  part x;
  x.mutable_collective()->set_kind(kind);
  x.mutable_collective()->set_count(count);
  x.mutable_collective()->set_datatype(proto::FLOAT32);
  x.mutable_collective()->set_algorithm("auto");
  return x;
}

part transfer(uint32_t peer, bool receives, uint64_t count = 8) {
  auto x = collective(proto::SEND_RECV, count);
  x.mutable_collective()->set_peer(peer);
  x.set_receives(receives);
  return x;
}

/// Four ranks on devices 10 to 13.
struct ranks_of_four {
  admission calls;
  uint64_t tickets = 0;

  ranks_of_four() { calls.set_ranks({1}, {std::begin(devices_of_four), std::end(devices_of_four)}); }

  uint64_t call(uint32_t rank, parts x, epoch_number epoch = {1}) {
    CHECK_FALSE(calls.call(++tickets, devices_of_four[rank], epoch, std::move(x)));
    return tickets;
  }
  admission::verdict one() {
    auto found = calls.next();
    REQUIRE(found);
    return *found;
  }
  bool nothing() { return !calls.next(); }
};

} // namespace

TEST_CASE("admission: a collective waits for every rank, and its parts come in rank order") {
  ranks_of_four x;
  for (uint32_t rank : {2, 0, 3}) {
    x.call(rank, {collective()});
    CHECK(x.nothing());
  }
  x.call(1, {collective()});
  auto found = x.one();
  CHECK_FALSE(found.problem);
  REQUIRE(found.parts.size() == 4);
  for (size_t rank = 0; rank < 4; ++rank)
    CHECK(found.parts[rank].device == devices_of_four[rank]);
  CHECK(x.nothing());
  CHECK(x.calls.idle());
}

TEST_CASE("admission: what differs is named with ranks and values, fails everywhere and nothing else") {
  auto mismatch = [](auto change) {
    ranks_of_four x;
    for (uint32_t rank = 0; rank < 4; ++rank) {
      auto mine = collective(proto::REDUCE);
      if (rank == 1 || rank == 3)
        change(mine);
      x.call(rank, {mine});
      x.call(rank, {collective()});
    }
    auto found = x.one();
    CHECK(found.parts.size() == 4);
    CHECK_FALSE(x.one().problem); // the next collective is as good as ever
    return render(found.problem);
  };
  CHECK(contains(mismatch([](part& y) { y.mutable_collective()->set_count(9); }),
                 "count: 8 on rank 0, 2; 9 on rank 1, 3"));
  CHECK(contains(mismatch([](part& y) { y.mutable_collective()->set_kind(proto::BROADCAST); }),
                 "call: broadcast on rank 1, 3; reduce on rank 0, 2"));
  CHECK(contains(mismatch([](part& y) { y.mutable_collective()->set_datatype(proto::INT32); }),
                 "datatype: float32 on rank 0, 2; int32 on rank 1, 3"));
  CHECK(contains(mismatch([](part& y) { y.mutable_collective()->set_op(gpu_sim::MAX); }),
                 "op: max on rank 1, 3; sum on rank 0, 2"));
  CHECK(contains(mismatch([](part& y) { y.mutable_collective()->set_root(2); }),
                 "root: 0 on rank 0, 2; 2 on rank 1, 3"));
  CHECK(contains(mismatch([](part& y) { y.set_in_place(true); }), "in place: no on rank 0, 2; yes on rank 1, 3"));
  CHECK(contains(mismatch([](part& y) { y.mutable_collective()->set_algorithm("ring"); }),
                 "algorithm: auto on rank 0, 2; ring on rank 1, 3"));
  CHECK(contains(mismatch([](part& y) { y.mutable_collective()->set_chunk_count(2); }),
                 "chunk: 0 on rank 0, 2; 2 on rank 1, 3"));
  CHECK(contains(mismatch([](part& y) {
                   y.mutable_collective()->set_op(gpu_sim::USER), y.mutable_collective()->set_user_op("mine");
                 }),
                 "op: mine on rank 1, 3"));
  CHECK(contains(mismatch([](part& y) { y.set_split(true); }), "call: reduce on rank 0, 2; split on rank 1, 3"));
}

TEST_CASE("admission: what a kind ignores may differ") {
  ranks_of_four x;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    auto mine = collective(proto::BARRIER, rank);
    mine.mutable_collective()->set_root(rank);
    mine.mutable_collective()->set_op(rank == 0 ? gpu_sim::MAX : gpu_sim::MIN);
    x.call(rank, {mine});
  }
  CHECK_FALSE(x.one().problem);
}

TEST_CASE("admission: ranks that call for another epoch are named") {
  ranks_of_four x;
  x.call(0, {collective()});
  x.calls.set_ranks({2}, {{10}, {11}, {12}});
  x.call(1, {collective()});
  x.call(2, {collective()}, {2});
  CHECK(contains(render(x.one().problem), "communicator epoch: 1 on rank 0, 1; 2 on rank 2"));
  CHECK(contains(render(x.calls.call(9, {13}, {1}, {collective()})), "device 0xd has no rank in this communicator"));
}

TEST_CASE("admission: calls for an older epoch match, and keep its rank numbers") {
  ranks_of_four x;
  auto of_epoch_1 = [] {
    auto result = collective(proto::GATHER);
    result.mutable_collective()->set_root(2);
    for (uint64_t count : {1, 2, 3, 4})
      result.mutable_collective()->add_counts(count);
    return result;
  };
  for (uint32_t rank : {0, 2})
    x.call(rank, {of_epoch_1()});
  x.calls.set_ranks({2}, {{10}, {12}, {13}});
  CHECK(x.nothing());
  x.call(3, {of_epoch_1()});
  auto found = x.one();
  REQUIRE_FALSE(found.problem);
  CHECK(found.parts[0].epoch == epoch_number{1});
  CHECK(found.parts[0].what.collective().root() == 2);
  auto request = joined(found.parts, std::vector<uint32_t>{0, 2, 3}, 4);
  CHECK(request.inputs_size() == 4);
  CHECK(request.collective().counts_size() == 4);
}

TEST_CASE("admission: what is with a lost device fails") {
  ranks_of_four x;
  x.call(0, {transfer(3, true)});
  x.calls.set_ranks({2}, {{10}, {11}, {12}});
  CHECK(render(x.one().problem) == "device 0xd was lost");
  x.call(0, {transfer(3, true)});
  CHECK(contains(render(x.one().problem), "receive from rank 3: device 0xd was lost"));
  x.call(0, {transfer(4, true)});
  CHECK(contains(render(x.one().problem), "receive from rank 4: there are ranks 0 to 3"));
  x.call(0, {transfer(0, true)});
  CHECK(contains(render(x.one().problem), "a rank cannot send to itself"));
}

TEST_CASE("admission: a call for an epoch that is not known fails for all ranks, and keeps its place") {
  ranks_of_four x;
  for (uint32_t rank = 0; rank < 3; ++rank)
    x.call(rank, {collective(proto::BROADCAST)});
  x.call(3, {collective(proto::BROADCAST)}, {7});
  auto found = x.one();
  CHECK(found.parts.size() == 4);
  CHECK(contains(render(found.problem), "rank 3 (device 0xd) calls for epoch 7, and the communicator is in epoch 1"));
  for (uint32_t rank = 0; rank < 4; ++rank)
    x.call(rank, {collective()});
  CHECK_FALSE(x.one().problem);
}

TEST_CASE("admission: a device that replaces another one takes its place in the order of calls") {
  ranks_of_four x;
  for (uint32_t rank = 0; rank < 4; ++rank)
    x.call(rank, {collective(proto::BARRIER)});
  CHECK_FALSE(x.one().problem);
  for (uint32_t rank : {0, 1, 3})
    x.call(rank, {collective()});
  x.calls.set_ranks({2}, {{10}, {11}, {20}, {13}});
  CHECK(x.nothing());
  CHECK_FALSE(x.calls.call(7, {20}, {2}, {collective()}));
  CHECK(contains(render(x.one().problem), "communicator epoch"));
  CHECK(x.calls.idle());
}

TEST_CASE("admission: a send meets its receive, in order, and only between the two") {
  ranks_of_four x;
  x.call(0, {transfer(1, false, 4)});
  x.call(0, {transfer(1, false, 5)});
  x.call(2, {collective()});
  CHECK(x.nothing());
  x.call(1, {transfer(0, true, 4)});
  auto first = x.one();
  CHECK_FALSE(first.problem);
  REQUIRE(first.parts.size() == 2);
  CHECK(first.parts[0].device == device_id{10});
  CHECK(first.parts[1].device == device_id{11});
  x.call(1, {transfer(0, true, 6)});
  CHECK(contains(render(x.one().problem), "count: 5 on rank 0; 6 on rank 1"));
  for (uint32_t rank : {0, 1, 3})
    x.call(rank, {collective()});
  CHECK_FALSE(x.one().problem);
}

TEST_CASE("admission: within a group the order of sends and receives does not matter") {
  ranks_of_four x;
  for (uint32_t rank = 0; rank < 4; ++rank)
    x.call(rank, {transfer((rank + 1) % 4, false), transfer((rank + 3) % 4, true), collective()});
  std::multiset<size_t> sizes;
  while (auto found = x.calls.next()) {
    CHECK_FALSE(found->problem);
    sizes.insert(found->parts.size());
  }
  CHECK(sizes == std::multiset<size_t>{2, 2, 2, 2, 4});
}

TEST_CASE("admission: calls that wait for each other in a circle fail at once") {
  ranks_of_four x;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    x.call(rank, {transfer((rank + 1) % 4, false)});
    x.call(rank, {transfer((rank + 3) % 4, true)});
  }
  auto first = x.one();
  CHECK(contains(render(first.problem),
                 "each waits for one that can never come: rank 0 called send to rank 1, rank 1 called send to"));
  size_t parts_failed = first.parts.size();
  while (auto found = x.calls.next()) {
    CHECK(found->problem);
    parts_failed += found->parts.size();
  }
  CHECK(parts_failed == 8); // the receives behind the sends, too: they are the same transfers
  for (uint32_t rank = 0; rank < 4; ++rank)
    x.call(rank, {collective()});
  CHECK_FALSE(x.one().problem);
}

TEST_CASE("admission: who has not called is named, and what is given up fails for those that come later, too") {
  ranks_of_four x;
  uint64_t first = 0;
  for (uint32_t rank : {0, 1, 2})
    first = x.call(rank, {collective()});
  CHECK(x.calls.waits_for(first, {17}) == "rank 3 (device 0xd) has not called all_reduce #17");
  x.calls.give_up(first, make_error(errc::timed_out, "too late"));
  auto found = x.one();
  CHECK(render(found.problem) == "too late");
  CHECK(found.parts.size() == 3);
  x.call(3, {collective()});
  found = x.one();
  CHECK(render(found.problem) == "too late");
  CHECK(found.parts.size() == 1);
  for (uint32_t rank = 0; rank < 4; ++rank)
    x.call(rank, {collective(proto::BARRIER)});
  CHECK_FALSE(x.one().problem);
}

TEST_CASE("admission: the cause of a late call is the rank at the end of the chain of waits") {
  ranks_of_four x;
  std::vector<proto::Verdict> judged;
  x.calls.judge_by([&](errc code, proto::Verdict found) {
    judged.push_back(found);
    return make_error(code, "judged");
  });
  x.call(0, {collective()}); // waits for rank 1, which waits for rank 2, which has called nothing
  const auto late = x.tickets;
  x.call(1, {transfer(2, false)});
  x.call(3, {collective()});
  x.calls.give_up_late(late, {17}, "waiting for 2.0 s");
  REQUIRE(judged.size() == 1);
  CHECK(judged[0].kind() == proto::Verdict::NEVER_CALLED);
  REQUIRE(judged[0].culprits_size() == 1);
  CHECK(judged[0].culprits(0).rank() == 2);
  CHECK(judged[0].waits_size() == 3);
  CHECK(render(x.one().problem) == "judged");
}

TEST_CASE("admission: of ranks that wait for each other with different calls the odd one called something else") {
  for (bool sender_is_late : {true, false}) {
    CAPTURE(sender_is_late);
    ranks_of_four x;
    std::vector<proto::Verdict> judged;
    x.calls.judge_by([&](errc code, proto::Verdict found) {
      judged.push_back(found);
      return make_error(code, "judged");
    });
    const auto sender = x.call(1, {transfer(2, false)});
    const auto other = x.call(2, {collective(proto::BARRIER)}); // instead of the receive
    x.calls.give_up_late(sender_is_late ? sender : other, {17}, "waiting for 2.0 s");
    REQUIRE(judged.size() == 1);
    CHECK(judged[0].kind() == proto::Verdict::CALLED_ELSE);
    REQUIRE(judged[0].culprits_size() == 1);
    CHECK(judged[0].culprits(0).rank() == 2);
    CHECK(judged[0].culprits(0).call() == "barrier");
    for (int call = 0; call < 2; ++call) // both are given up: neither can ever match
      CHECK(render(x.one().problem) == "judged");
    CHECK(x.nothing());
  }
}

TEST_CASE("admission: the rank whose call differs from most is the culprit; without a majority all are") {
  for (uint32_t odd : {0, 1, 3}) {
    CAPTURE(odd);
    ranks_of_four x;
    std::vector<proto::Verdict> judged;
    x.calls.judge_by([&](errc code, proto::Verdict found) {
      judged.push_back(found);
      return make_error(code, "judged");
    });
    for (uint32_t rank = 0; rank < 4; ++rank)
      x.call(rank, {collective(proto::ALL_REDUCE, rank == odd ? 9 : 8)});
    CHECK(render(x.one().problem) == "judged");
    for (uint32_t rank = 0; rank < 4; ++rank)
      x.call(rank, {collective(proto::ALL_REDUCE, rank % 2 == 0 ? 9 : 8)});
    CHECK(render(x.one().problem) == "judged");
    REQUIRE(judged.size() == 2);
    REQUIRE(judged[0].culprits_size() == 1);
    CHECK(judged[0].culprits(0).rank() == odd);
    CHECK(judged[1].culprits_size() == 4);
  }
}

TEST_CASE("admission: a rank whose call waits behind another one of its own is told apart") {
  ranks_of_four x;
  x.call(0, {collective()});
  auto ticket = x.tickets;
  x.call(1, {transfer(0, true)});
  x.call(1, {collective()});
  CHECK(x.calls.waits_for(ticket, {3})
        == "rank 2 (device 0xc) has not called all_reduce #3, rank 3 (device 0xd) has not called all_reduce #3");
  x.call(2, {collective()});
  x.call(3, {collective()});
  CHECK(x.calls.waits_for(ticket, {3})
        == "rank 1 (device 0xb) has called receive from rank 0 before it, which still waits");
}

TEST_CASE("admission: all_to_all with counts compares what is sent with what is expected") {
  auto verdict = [](uint64_t expected) {
    admission calls;
    calls.set_ranks({1}, {{1}, {2}});
    part a = collective(proto::ALL_TO_ALL), b = a;
    for (uint64_t n : {1, 2})
      a.mutable_collective()->add_counts(n);
    for (uint64_t n : {3, 4})
      b.mutable_collective()->add_counts(n);
    for (uint64_t n : {1, 3})
      a.add_receive_counts(n);
    b.add_receive_counts(expected);
    b.add_receive_counts(4);
    CHECK_FALSE(calls.call(1, {1}, {1}, {a}));
    CHECK_FALSE(calls.call(2, {2}, {1}, {b}));
    return *calls.next();
  };
  CHECK(contains(render(verdict(5).problem), "counts: rank 0 sends 2 elements to rank 1, which expects 5"));
  auto good = verdict(2);
  CHECK_FALSE(good.problem);
  auto request = joined(good.parts, std::vector<uint32_t>{0, 1}, 2);
  CHECK(std::vector<uint64_t>(request.collective().counts().begin(), request.collective().counts().end())
        == std::vector<uint64_t>{1, 2, 3, 4});
}

TEST_CASE("admission: any order in which the ranks' calls come gives the same operations in the same order") {
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    std::mt19937 random{seed};
    ranks_of_four x;
    std::vector<size_t> made(4, 0);
    std::vector<uint64_t> counts;
    constexpr size_t calls = 12;
    while (*std::min_element(made.begin(), made.end()) < calls) {
      auto rank = random() % 4;
      if (made[rank] < calls)
        x.call(static_cast<uint32_t>(rank), {collective(proto::ALL_REDUCE, 100 + made[rank]++)});
      while (auto found = x.calls.next()) {
        CHECK_FALSE(found->problem);
        counts.push_back(found->parts[0].what.collective().count());
      }
    }
    REQUIRE(counts.size() == calls);
    for (size_t i = 0; i < calls; ++i)
      CHECK(counts[i] == 100 + i);
  }
}

TEST_CASE("admission: a spare that joins behind a collective that was given up counts with the others") {
  ranks_of_four x;
  auto first = x.call(0, {collective()});
  x.calls.give_up(first, make_error(errc::timed_out, "too late"));
  CHECK(render(x.one().problem) == "too late");
  for (uint32_t rank : {1, 2}) { // they hear of it when they call
    x.call(rank, {collective()});
    CHECK(render(x.one().problem) == "too late");
  }
  x.calls.set_ranks({2}, {{10}, {11}, {12}, {20}}); // rank 3 was lost before it called
  CHECK(x.nothing());
  for (uint32_t rank : {0, 1, 2})
    x.call(rank, {collective()}, {2});
  CHECK_FALSE(x.calls.call(99, {20}, {2}, {collective()}));
  auto met = x.one();
  CHECK_FALSE(met.problem);
  CHECK(met.parts.size() == 4);
}

TEST_CASE("admission: a failed operation is kept until the last rank has made its call, and no longer") {
  constexpr int rounds = 100;
  for (bool collectives : {true, false}) {
    CAPTURE(collectives);
    ranks_of_four x;
    for (int round = 0; round < rounds; ++round) {
      auto part_of = [&](uint32_t rank) { return collectives ? collective() : transfer(rank == 0 ? 1 : 0, rank == 1); };
      x.calls.give_up(x.call(0, {part_of(0)}), make_error(errc::timed_out, "late"));
      CHECK(x.one().parts.size() == 1);
      CHECK(x.calls.failures_kept() == 1);
      for (uint32_t rank = 1; rank < (collectives ? 4u : 2u); ++rank) {
        CHECK(x.calls.failures_kept() == 1);
        x.call(rank, {part_of(rank)});
        CHECK(render(x.one().problem) == "late");
      }
      CHECK(x.calls.failures_kept() == 0);
      CHECK(x.nothing());
    }
    CHECK(x.calls.idle());
  }
}

TEST_CASE("admission: a failed operation is not kept for a rank that is lost before it calls") {
  ranks_of_four x;
  x.calls.give_up(x.call(0, {collective()}), make_error(errc::timed_out, "late"));
  x.one();
  for (uint32_t rank : {1, 2}) {
    x.call(rank, {collective()});
    x.one();
  }
  CHECK(x.calls.failures_kept() == 1);
  x.calls.set_ranks({2}, {devices_of_four[0], devices_of_four[1], devices_of_four[2]});
  CHECK(x.calls.failures_kept() == 0);
}
