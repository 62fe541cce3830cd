#include "runtime/schedule/collective.hpp"
#include "tests/support/trials/grouped_calls.hpp"

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

struct fixture : grouped_calls {
  using grouped_calls::grouped_calls;

  /// Three calls of one, two and three elements a rank or block, over these ranks.
  void every_kind(proto::CollectiveKind kind, bool in_place, bool together,
                  const std::function<void()>& before_end = {}, const std::vector<uint32_t>& ranks = {0, 1, 2, 3}) {
    auto change = [&](uint64_t i, proto::CollectiveRequest& y) {
      auto& what = *y.mutable_collective();
      what.set_kind(kind);
      what.set_algorithm(kind == proto::SEND_RECV ? "direct" : "naive");
      what.set_count(kind == proto::BARRIER ? 0 : i + 1);
      what.set_root(has_root(kind) ? 1 : 0);
      what.set_peer(kind == proto::SEND_RECV ? 3 : 0);
      y.clear_inputs(), y.clear_outputs();
      for (auto rank : ranks) {
        y.add_inputs(address(rank, 16 * i));
        if (!in_place)
          y.add_outputs(address(rank, 64 + 16 * i));
      }
    };
    if (together)
      return group(3, change, before_end);
    for (uint64_t i = 0; i < 3; ++i)
      group(1, [&](uint64_t, proto::CollectiveRequest& y) { change(i, y); });
  }
};

} // namespace

TEST_CASE("fusing: a group's small all-reduces are walked as one, and each is right") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    fixture x{seed, seed % 2 == 0};
    x.group(20);
    CHECK(x.cluster.wait(x.comm.commid()).error() == "");
    for (uint32_t rank = 0; rank < 4; ++rank) {
      CHECK(x.read(rank, 64, 40) == x.sums(20));
      CHECK(x.walks(rank) == 1);
    }
    auto records = x.cluster.history();
    CHECK(std::count_if(records.begin(), records.end(), [](auto& y) { return y.has_operation_ended(); }) == 20);
  }
}

TEST_CASE("fusing: calls of every kind are walked as one, and give what each gives by itself") {
  for (auto kind : collective_kinds())
    for (bool in_place : {false, true}) {
      CAPTURE(name_of(kind));
      CAPTURE(in_place);
      auto memories = [&](bool together) {
        fixture x{4, kind % 2 == 0, false};
        x.every_kind(kind, in_place, together);
        CHECK(x.cluster.wait(x.comm.commid()).error() == "");
        CHECK((x.walks(1) == 1) == together);
        return x.memories();
      };
      CHECK(memories(true) == memories(false));
    }
}

TEST_CASE("fusing: blocks of a rank that dies at any step are left out, of all of the fused calls or of none") {
  for (auto kind : {proto::ALL_GATHER, proto::ALL_TO_ALL, proto::REDUCE_SCATTER}) {
    auto expected = [&](bool without) {
      fixture x{1};
      if (without) {
        x.cluster.inject(x.device(2), {});
        x.cluster.wait(x.comm.commid());
      }
      x.every_kind(kind, false, false, {},
                   without ? std::vector<uint32_t>{0, 1, 3} : std::vector<uint32_t>{0, 1, 2, 3});
      CHECK(x.cluster.wait(x.comm.commid()).error() == "");
      return x.memories({0, 1, 3});
    };
    auto with = expected(false), without = expected(true);
    CHECK(with != without);
    for (uint32_t step = 0; step <= 4; ++step) {
      CAPTURE(name_of(kind));
      CAPTURE(step);
      fixture x{step + 1, step % 2 == 0};
      proto::FaultRequest fault;
      fault.set_at_step(true);
      fault.set_step(step);
      x.every_kind(kind, false, true, [&] { x.cluster.inject(x.device(2), fault); });
      CHECK(x.cluster.wait(x.comm.commid()).error() == "");
      auto found = x.memories({0, 1, 3});
      CHECK((found == with || found == without));
    }
  }
}

TEST_CASE("fusing: in place, with factors, and of nothing") {
  fixture x{3};
  x.group(3, [](uint64_t i, auto& y) {
    y.clear_outputs();
    y.mutable_collective()->set_count(i == 1 ? 0 : 2);
    y.mutable_collective()->set_op(gpu_sim::PREMUL_SUM);
    y.mutable_collective()->add_factors(2);
  });
  CHECK(x.cluster.wait(x.comm.commid()).error() == "");
  CHECK(x.read(3, 0, 6) == floats{30, 60, 8 * 3, 8 * 4, 30 * 5, 30 * 6});
  CHECK(x.walks(0) == 1);
}

TEST_CASE("fusing: what depends on another one's result, or is something else, is walked for itself") {
  auto walks = [](auto change) {
    fixture x{5};
    x.group(2, [&](uint64_t i, proto::CollectiveRequest& y) {
      if (i == 1)
        change(x, y);
    });
    CHECK(x.cluster.wait(x.comm.commid()).error() == "");
    return x.walks(1);
  };
  CHECK(walks([](auto&, auto&) {}) == 1);
  CHECK(walks([](auto& x, auto& y) { // the first one's output is its input
          for (uint32_t rank = 0; rank < 4; ++rank)
            y.set_inputs(static_cast<int>(rank), x.address(rank, 64));
        })
        == 2);
  CHECK(walks([](auto&, auto& y) { y.mutable_collective()->set_op(gpu_sim::MAX); }) == 2);
  CHECK(walks([](auto&, auto& y) { y.mutable_collective()->set_algorithm("butterfly"); }) == 2);
  CHECK(walks([](auto&, auto& y) { y.mutable_collective()->set_kind(proto::BROADCAST); }) == 2);
  CHECK(walks([](auto&, auto& y) { y.mutable_collective()->set_datatype(proto::INT32); }) == 2);
}

TEST_CASE("fusing: not what an operation in place would write once a rank is lost") {
  auto walks = [](uint64_t input) {
    fixture x{5};
    x.group(2, [&](uint64_t i, proto::CollectiveRequest& y) {
      y.mutable_collective()->set_kind(proto::REDUCE_SCATTER);
      y.mutable_collective()->set_algorithm("naive");
      y.mutable_collective()->set_count(i == 0 ? 2 : 1);
      y.clear_inputs();
      if (i == 0)
        y.clear_outputs();
      for (uint32_t rank = 0; rank < 4; ++rank)
        y.add_inputs(x.address(rank, i == 0 ? 0 : input));
    });
    CHECK(x.cluster.wait(x.comm.commid()).error() == "");
    return x.walks(3);
  };
  CHECK(walks(2) == 2); // rank 3's output is elements 6 and 7 now, and 4 and 5 without a rank before it
  CHECK(walks(8) == 1);
}

TEST_CASE("fusing: not where the company would change the bits") {
  auto walks = [](proto::DataType type, const char* algorithm) {
    fixture x{5};
    x.group(2, [&](uint64_t, proto::CollectiveRequest& y) {
      y.mutable_collective()->set_datatype(type), y.mutable_collective()->set_algorithm(algorithm);
    });
    CHECK(x.cluster.wait(x.comm.commid()).error() == "");
    return x.walks(1);
  };
  CHECK(walks(proto::FLOAT32, "ring") == 2);
  CHECK(walks(proto::FLOAT32, "ring_pipelined") == 2);
  CHECK(walks(proto::FLOAT32, "halving_doubling") == 1);
  CHECK(walks(proto::INT32, "ring") == 1);
  CHECK(walks(proto::FLOAT32, "butterfly") == 1);
}

TEST_CASE("fusing: one that depends on a fused one's result sees it") {
  fixture x{6};
  x.group(3, [&](uint64_t i, proto::CollectiveRequest& y) {
    if (i == 2)
      for (uint32_t rank = 0; rank < 4; ++rank)
        y.set_inputs(static_cast<int>(rank), x.address(rank, 64));
  });
  CHECK(x.cluster.wait(x.comm.commid()).error() == "");
  CHECK(x.read(2, 68, 2) == floats{60, 120});
}

TEST_CASE("fusing: a rank that dies at any step leaves one group's sums, for all of the fused calls") {
  for (uint32_t step = 0; step <= 8; ++step)
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      CAPTURE(step);
      CAPTURE(seed);
      fixture x{seed, seed % 2 == 0};
      x.group(
        5,
        seed < 3 ? std::function<void(uint64_t, proto::CollectiveRequest&)>{}
                 : [](uint64_t, auto& y) { y.clear_outputs(); },
        [&] {
          proto::FaultRequest fault;
          fault.set_at_step(true);
          fault.set_step(step);
          x.cluster.inject(x.device(2), fault);
        });
      CHECK(x.cluster.wait(x.comm.commid()).error() == "");
      auto at = seed < 3 ? 64u : 0u;
      auto found = x.read(0, at, 10);
      CHECK((found == x.sums(5, 11) || found == x.sums(5, 15)));
      for (uint32_t rank : {1, 3})
        CHECK(x.read(rank, at, 10) == found);
    }
}

TEST_CASE("fusing: calls of a group of ranks") {
  fixture x{9};
  std::vector<work> all;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    auto& mine = x.handles[rank];
    call_group group{{&mine}};
    for (uint64_t i = 0; i < 10; ++i)
      mine.all_reduce(x.buffers(rank, 2 * i, 64 + 2 * i), 2, proto::FLOAT32, {}, {.algorithm = "butterfly"});
    all.push_back(group.end());
  }
  CHECK(x.all_well(all));
  CHECK(x.read(1, 64, 20) == x.sums(10));
  CHECK(x.walks(1) == 1);
}

TEST_CASE("fusing: all of them fail together") {
  fixture x{2};
  proto::FaultRequest slow;
  slow.set_kind(proto::FaultRequest::SLOW);
  slow.set_delay_ns(300'000'000);
  x.cluster.inject(x.device(1), slow);
  x.group(3, [](uint64_t i, auto& y) {
    y.clear_outputs();
    y.set_timeout_ns(i == 1 ? 500'000'000 : 0);
  });
  CHECK(contains(x.cluster.wait(x.comm.commid()).error(), "operation #2 has not ended within its limit"));
  auto records = x.cluster.history();
  CHECK(
    std::count_if(records.begin(), records.end(),
                  [](auto& y) { return y.has_operation_ended() && y.operation_ended().status() == gpu_sim::FAILED; })
    == 3);
  CHECK(x.read(2, 0, 2) == floats{4, 8});
}
