#include "runtime/selection/known_picks.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace ringmaster;

namespace {

const candidate& named(const std::vector<candidate>& all, std::string_view name) {
  auto found = std::find_if(all.begin(), all.end(), [&](auto& x) { return x.which->name == name; });
  REQUIRE(found != all.end());
  return *found;
}

} // namespace

TEST_CASE("selection: an estimate sums latencies, bytes and overheads of the cost") {
  cost_constants constants{.latency_s = 3e-6, .bandwidth = 1e9, .message_overhead_s = 1e-6, .round_overhead_s = 1e-7};
  auto all = candidates(proto::ALL_REDUCE, {.world_size = 8, .count = 8000}, 4, constants);
  REQUIRE(all);
  const auto& ring = named(*all, "ring");
  CHECK(ring.time.latency_s == doctest::Approx(14 * 3e-6));
  CHECK(ring.time.transfer_s == doctest::Approx(14 * 4000 / 1e9));
  CHECK(ring.time.reduction_s == 0);
  CHECK(ring.time.overhead_s == doctest::Approx(14 * 1e-6 + 14 * 1e-7));
  CHECK(ring.time.total_s() == doctest::Approx(ring.time.latency_s + ring.time.transfer_s + ring.time.overhead_s));
  const auto& naive = named(*all, "naive");
  CHECK(naive.time.latency_s == doctest::Approx(8 * 3e-6));
  CHECK(naive.time.transfer_s == doctest::Approx(14 * 32000 / 1e9));
}

TEST_CASE("selection: reductions count if they take time") {
  cost_constants constants{.reduction_rate = 1e9};
  auto all = candidates(proto::ALL_REDUCE, {.world_size = 8, .count = 8000}, 4, constants);
  REQUIRE(all);
  CHECK(named(*all, "ring").time.reduction_s == doctest::Approx(7 * 4000 / 1e9));
  CHECK(named(*all, "naive").time.reduction_s == doctest::Approx(7 * 32000 / 1e9));
}

TEST_CASE("selection: the candidates come cheapest first, and the first is selected") {
  for (auto kind : collective_kinds())
    for (uint64_t count : {1, 100, 10'000, 10'000'000}) {
      plan_request request{.world_size = 8, .count = count, .peer = 1};
      auto all = candidates(kind, request, 4, {});
      if (std::none_of(algorithms().begin(), algorithms().end(), [&](auto& x) { return x.kind == kind; })) {
        CHECK(!all);
        continue;
      }
      REQUIRE(all);
      CHECK(std::is_sorted(all->begin(), all->end(),
                           [](auto& a, auto& b) { return a.time.total_s() < b.time.total_s(); }));
      CHECK(select_algorithm(kind, request, 4, {})->which == all->front().which);
    }
}

TEST_CASE("selection: the size decides between a ring and rank 0") {
  auto faster = [](uint64_t count) {
    auto all = candidates(proto::ALL_REDUCE, {.world_size = 8, .count = count}, 4, {});
    REQUIRE(all);
    return named(*all, "ring").time.total_s() < named(*all, "naive").time.total_s();
  };
  CHECK(!faster(8));
  CHECK(faster(1'000'000));
  auto ranges = selection_by_size(proto::ALL_REDUCE, {.world_size = 8}, 4, {}, uint64_t{1} << 30);
  REQUIRE(ranges);
  REQUIRE(!ranges->empty());
  CHECK(ranges->front().elements_min == 1);
  for (size_t i = 0; i < ranges->size(); ++i) {
    auto selected = select_algorithm(proto::ALL_REDUCE, {.world_size = 8, .count = (*ranges)[i].elements_min}, 4, {});
    CHECK(selected->which == (*ranges)[i].which);
    if (i > 0)
      CHECK((*ranges)[i - 1].which != (*ranges)[i].which);
  }
}

TEST_CASE("selection: on several hosts an estimate separates messages between and within hosts") {
  cost_constants constants{.latency_s = 1e-4,
                           .bandwidth = 1e9,
                           .message_overhead_s = 1e-6,
                           .operation_s = 1e-3,
                           .host_latency_s = 1e-6,
                           .host_bandwidth = 1e10};
  const plan_request request{.world_size = 8, .count = 8000, .hosts = {0, 0, 0, 0, 1, 1, 1, 1}};
  auto all = candidates(proto::ALL_REDUCE, request, 4, constants);
  REQUIRE(all);
  const auto& two_levels = named(*all, "hierarchical");
  REQUIRE(two_levels.on_hosts);
  CHECK(two_levels.on_hosts->across.latencies == 2); // a ring of two hosts: four ranks, half of a quarter each
  CHECK(two_levels.on_hosts->across.bytes == 2 * 4 * 4000);
  CHECK(two_levels.on_hosts->within.latencies == 6);
  CHECK(two_levels.on_hosts->within.bytes == 6 * 8000);
  CHECK(two_levels.time.latency_s == doctest::Approx(2 * 1e-4 + 6 * 1e-6));
  CHECK(two_levels.time.transfer_s == doctest::Approx(32000 / 1e9 + 48000 / 1e10));
  CHECK(two_levels.on_hosts->messages == 8); // each rank of a host sends one a round
  CHECK(two_levels.time.overhead_s == doctest::Approx(1e-3 + 8 * 1e-6));
  const auto& ring = named(*all, "ring"); // of every round a block goes across
  CHECK(ring.on_hosts->across.latencies == 14);
  CHECK(ring.on_hosts->across.bytes == 14 * 4000);
  CHECK(ring.on_hosts->within.latencies == 0);
  CHECK(named(*all, "halving_doubling").on_hosts->across.bytes == 2 * 4 * 16000);
  auto flat = request;
  for (auto hosts : {std::vector<uint32_t>{}, std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}}) {
    flat.hosts = hosts;
    auto on_one_level = candidates(proto::ALL_REDUCE, flat, 4, constants);
    REQUIRE(on_one_level);
    for (auto& x : *on_one_level)
      CHECK(!x.on_hosts);
  }
}

TEST_CASE("selection: layout and costs decide between hierarchical and flat algorithms") {
  const std::vector<uint32_t> four_of_four{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
  const cost_constants slow_across{.latency_s = 1e-4, .bandwidth = 1e9, .host_latency_s = 1e-6, .host_bandwidth = 1e11};
  auto even = slow_across; // no level is faster than the other
  even.host_latency_s = even.latency_s;
  even.host_bandwidth = even.bandwidth;
  auto picked = [](proto::CollectiveKind kind, plan_request request, const cost_constants& constants) {
    auto best = select_algorithm(kind, request, 4, constants);
    REQUIRE(best);
    return best->which->name == "hierarchical";
  };
  constexpr uint64_t large = 1 << 20, small = 4;
  for (auto kind : {proto::ALL_REDUCE, proto::REDUCE_SCATTER, proto::ALL_GATHER, proto::BROADCAST}) {
    CAPTURE(name_of(kind));
    const plan_request request{.world_size = 16, .count = has_v_variant(kind) ? large / 16 : large};
    auto on_hosts = request;
    on_hosts.hosts = four_of_four;
    CHECK(picked(kind, on_hosts, slow_across));
    CHECK(!picked(kind, request, slow_across));
    CHECK(!picked(kind, on_hosts, even));
  }
  // Its messages across are fewer, its bytes as many: it is for small blocks, where messages count.
  auto by_message = slow_across;
  by_message.message_overhead_s = 1e-5;
  CHECK(picked(proto::ALL_TO_ALL, {.world_size = 16, .count = small, .hosts = four_of_four}, by_message));
  CHECK(!picked(proto::ALL_TO_ALL, {.world_size = 16, .count = small}, by_message));
  CHECK(!picked(proto::ALL_TO_ALL, {.world_size = 16, .count = large, .hosts = four_of_four}, by_message));
}

TEST_CASE("selection: irregular layouts are estimated, and those of many ranks as a uniform network") {
  const plan_request uneven{.world_size = 7, .count = 70000, .hosts = {0, 0, 0, 0, 0, 1, 2}};
  auto all = candidates(proto::ALL_REDUCE, uneven, 4, {});
  REQUIRE(all);
  for (auto& x : *all) {
    REQUIRE(x.on_hosts);
    CHECK(x.on_hosts->across.bytes > 0);
  }
  plan_request many{.world_size = 300, .count = 300};
  for (uint32_t rank = 0; rank < 300; ++rank)
    many.hosts.push_back(rank / 4);
  CHECK(!has_two_levels(many));
  CHECK(!select_algorithm(proto::ALL_GATHER, many, 4, {})->on_hosts);
}

TEST_CASE("selection: the size of pieces depends on the network, unless it is configured") {
  const plan_request large{.world_size = 64, .count = uint64_t{64} << 20}; // 256 MiB
  for (auto& which : algorithms()) {
    CAPTURE(name_of(which.kind));
    CAPTURE(which.name);
    if (has_v_variant(which.kind) || which.kind == proto::SEND_RECV || which.kind == proto::BARRIER)
      continue;
    auto seconds = [&](uint64_t chunk) {
      auto request = large;
      request.chunk = chunk;
      return named(*candidates(which.kind, request, 4, {}), which.name).time.total_s();
    };
    const auto chunk = chunk_for(which, large, 4, {});
    REQUIRE(chunk);
    CHECK((*chunk != 0) == which.is.in_chunks);
    if (!which.is.in_chunks)
      continue;
    CHECK(named(*candidates(which.kind, large, 4, {}), which.name).chunk == *chunk);
    if (*chunk > 1u << 16) // else it is for additions beside
      for (uint64_t other = 1024; other <= large.count; other *= 2)
        CHECK(seconds(*chunk) <= seconds(other));
    auto told = large;
    told.chunk = 777;
    CHECK(*chunk_for(which, told, 4, {}) == 777);
    auto small = large;
    small.count = 100;
    CHECK(*chunk_for(which, small, 4, {}) == 0);
  }
}

TEST_CASE("selection: a longer latency leads to larger pieces, a slower link to smaller ones") {
  const plan_request request{.world_size = 64, .count = uint64_t{64} << 20};
  auto& tree = **find_algorithm(proto::ALL_REDUCE, "double_tree");
  auto chunk = [&](double latency_s, double bandwidth) {
    return *chunk_for(tree, request, 4, {.latency_s = latency_s, .bandwidth = bandwidth});
  };
  CHECK(chunk(5e-6, 50e9) == 1u << 19); // 2 MiB
  CHECK(chunk(5e-4, 50e9) > chunk(5e-6, 50e9));
  CHECK(chunk(5e-6, 1e9) < chunk(5e-6, 50e9));
  // Two ranks' pieces would follow each other over one link: a broadcast goes in one, what is added in what is under
  // way at a time.
  const plan_request pair{.world_size = 2, .count = uint64_t{64} << 20};
  CHECK(*chunk_for(**find_algorithm(proto::BROADCAST, "chain"), pair, 4, {}) == pair.count);
  CHECK(*chunk_for(**find_algorithm(proto::ALL_REDUCE, "chain"), pair, 4, {}) == 1u << 16); // 5 us x 50 GB/s
}

TEST_CASE("known_picks: caches pieces by algorithm and hosts, and forgets them") {
  known_picks picks;
  plan_request request{.world_size = 64, .count = uint64_t{64} << 20};
  auto chunk = [&](const char* name, const cost_constants& constants = {}) {
    return *picks.chunk(proto::ALL_REDUCE, name, request, 4, constants);
  };
  const auto once = chunk("double_tree");
  CHECK(once == *chunk_for(**find_algorithm(proto::ALL_REDUCE, "double_tree"), request, 4, {}));
  CHECK(chunk("ring_pipelined") != once);
  CHECK(chunk("ring") == 0);
  const cost_constants slow{.latency_s = 5e-4};
  CHECK(chunk("double_tree", slow) == once); // which it does not compute again
  picks.forget();
  CHECK(chunk("double_tree", slow) > once);
  CHECK(!picks.chunk(proto::ALL_REDUCE, "moon", request, 4, {}));
}

TEST_CASE("known_picks: returns the selected algorithm, also after forget(), and by hosts") {
  known_picks picks;
  const cost_constants slow_across{.latency_s = 1e-4, .bandwidth = 1e9, .host_latency_s = 1e-6, .host_bandwidth = 1e11};
  for (int again = 0; again < 3; ++again) {
    for (uint64_t count = 1; count < 100; ++count) { // more than it keeps
      const plan_request request{.world_size = 4, .count = count * count * count, .hosts = {0, 0, 1, 1}};
      CHECK(*picks.pick(proto::ALL_REDUCE, request, 4, slow_across)
            == select_algorithm(proto::ALL_REDUCE, request, 4, slow_across)->which);
    }
    picks.forget();
  }
  plan_request request{.world_size = 8, .count = 1 << 20, .hosts = {0, 0, 0, 0, 1, 1, 1, 1}};
  CHECK((*picks.pick(proto::ALL_REDUCE, request, 4, slow_across))->name == "hierarchical");
  request.hosts.clear();
  CHECK((*picks.pick(proto::ALL_REDUCE, request, 4, slow_across))->name != "hierarchical");
  request.world_size = 0;
  CHECK(!picks.pick(proto::ALL_REDUCE, request, 4, slow_across));
}

TEST_CASE("selection: an algorithm that refuses the request is no candidate") {
  plan_request uneven{.world_size = 2, .counts = {1, 2, 3, 4}};
  REQUIRE(!find_algorithm(proto::ALL_TO_ALL, "bruck", uneven));
  auto all = candidates(proto::ALL_TO_ALL, uneven, 4, {});
  REQUIRE(all);
  REQUIRE(!all->empty());
  for (const auto& x : *all)
    CHECK(x.which->name != "bruck");
}

TEST_CASE("selection: invalid requests are refused") {
  auto refused = candidates(proto::ALL_REDUCE, {.world_size = 0, .count = 8}, 4, {});
  REQUIRE(!refused);
  CHECK(code_of(refused.error()) == errc::invalid_argument);
}
