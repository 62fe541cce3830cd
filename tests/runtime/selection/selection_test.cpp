#include "runtime/selection/selection.hpp"

#include "messages/errc.hpp"
#include "runtime/text/quantity_parse.hpp"

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

TEST_CASE("selection: an estimate is latencies, bytes and overheads, as the cost counts them") {
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

TEST_CASE("selection: reductions count where they take time") {
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

TEST_CASE("selection: between a ring and rank 0 doing it all, size decides") {
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

TEST_CASE("selection: an algorithm that does not take the request is no candidate") {
  plan_request uneven{.world_size = 2, .counts = {1, 2, 3, 4}};
  REQUIRE(!find_algorithm(proto::ALL_TO_ALL, "bruck", uneven));
  auto all = candidates(proto::ALL_TO_ALL, uneven, 4, {});
  REQUIRE(all);
  REQUIRE(!all->empty());
  for (const auto& x : *all)
    CHECK(x.which->name != "bruck");
}

TEST_CASE("selection: what makes no sense is refused") {
  auto refused = candidates(proto::ALL_REDUCE, {.world_size = 0, .count = 8}, 4, {});
  REQUIRE(!refused);
  CHECK(code_of(refused.error()) == errc::invalid_argument);
}

TEST_CASE("selection: quantities are read as people write them") {
  CHECK(*parse_bytes("4096") == 4096);
  CHECK(*parse_bytes("64K") == 65536);
  CHECK(*parse_bytes("64KiB") == 65536);
  CHECK(*parse_bytes("64KB") == 64'000);
  CHECK(*parse_bytes("1GB") == 1'000'000'000);
  CHECK(*parse_bytes("8B") == 8);
  CHECK(*parse_duration_ps("5us") == 5'000'000);
  CHECK(*parse_duration_ps("1.5 ms") == 1'500'000'000);
  CHECK(*parse_duration_ps("0") == 0);
  CHECK(*parse_bandwidth("50GB/s") == 50e9);
  CHECK(*parse_bandwidth("400Gbit/s") == 50e9);
  CHECK(*parse_bandwidth("400Gbps") == 50e9);
  CHECK(*parse_bandwidth("1GiB/s") == 1073741824.0);
  for (auto text : {"", "-1", "1X", "1KX", "K", "1e9999", "nan", "99999999P", "1iB", "1.5MiB"})
    CHECK(!parse_bytes(text));
  for (auto text : {"", "5", "-5us", "5 hours", "5000000s"})
    CHECK(!parse_duration_ps(text));
  for (auto text : {"", "50", "50GB", "0GB/s", "50XB/s", "50G/s"})
    CHECK(!parse_bandwidth(text));
  CHECK(render(parse_bandwidth("50").error())
        == "\"50\" is not a bandwidth such as 50GB/s, 12.5GiB/s, 400Gbit/s or 400Gbps");
}
