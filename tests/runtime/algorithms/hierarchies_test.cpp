#include "runtime/algorithms/hierarchies/host_map.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/rank_order/rank_order.hpp"
#include "runtime/schedule/blocks.hpp"
#include "tests/support/port_model.hpp"
#include "tests/support/schedule_interpreter.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

using layout = std::vector<uint32_t>; // by rank

constexpr std::string_view hierarchical = "hierarchical";

std::vector<proto::CollectiveKind> hierarchical_kinds() {
  std::vector<proto::CollectiveKind> kinds;
  for (auto& x : algorithms())
    if (x.is.by_hosts)
      kinds.push_back(x.kind);
  return kinds;
}

/// Every way to place this number of ranks on hosts.
std::vector<layout> all_layouts(uint32_t ranks) {
  std::vector<layout> result{{}};
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    std::vector<layout> longer;
    for (auto& x : result)
      for (uint32_t host = 0; host <= (x.empty() ? 0 : *std::max_element(x.begin(), x.end()) + 1); ++host) {
        longer.push_back(x);
        longer.back().push_back(host);
      }
    result = std::move(longer);
  }
  return result;
}

layout layout_of(const std::vector<uint32_t>& sizes) {
  layout result;
  for (uint32_t host = 0; host < sizes.size(); ++host)
    result.insert(result.end(), sizes[host], host);
  return result;
}

std::vector<uint64_t> some_counts(proto::CollectiveKind kind, uint32_t ranks) {
  std::vector<uint64_t> result(size_t{ranks} * (kind == proto::ALL_TO_ALL ? ranks : 1));
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = (5 * i + 3 + i / ranks) % 4;
  return result;
}

/// Uniform, of fewer elements than ranks and of more, and with counts by rank; a root on any host.
std::vector<plan_request> requests_on(proto::CollectiveKind kind, const layout& hosts) {
  const auto n = static_cast<uint32_t>(hosts.size());
  std::vector<plan_request> result;
  std::set<uint32_t> roots{0};
  if (has_root(kind))
    roots = {0, n / 2, n - 1};
  for (auto root : roots) {
    for (uint64_t count : {uint64_t{1}, uint64_t{n} - 1, uint64_t{3} * n + 2})
      result.push_back({.world_size = n, .count = count, .root = root, .hosts = hosts});
    if (kind == proto::BROADCAST)
      result.push_back({.world_size = n, .count = uint64_t{3} * n + 2, .root = root, .chunk = 2, .hosts = hosts});
    if (has_v_variant(kind))
      result.push_back({.world_size = n, .root = root, .counts = some_counts(kind, n), .hosts = hosts});
  }
  return result;
}

std::string text_of_request(proto::CollectiveKind kind, const plan_request& x) {
  return fmt::format("{} on hosts {}, count {}, counts {}, root {}, chunk {}", name_of(kind), fmt::join(x.hosts, ","),
                     x.count, fmt::join(x.counts, ","), x.root, x.chunk);
}

/// The proof holds, the cost is what the walk found, and on a uniform network it takes no longer than stated.
void check_layout(proto::CollectiveKind kind, const plan_request& request) {
  CAPTURE(text_of_request(kind, request));
  const auto ranks = planned(kind, hierarchical, request);
  const auto found = prove(kind, request, ranks, request.world_size * 7919 + request.count);
  REQUIRE_MESSAGE(!found.fault, render(found.fault));
  const auto cost = cost_of(kind, hierarchical, request);
  REQUIRE(cost);
  auto most = [](const std::vector<uint64_t>& by_rank) { return *std::max_element(by_rank.begin(), by_rank.end()); };
  CHECK(cost->rounds == found.rounds);
  CHECK(cost->elements == most(found.elements_sent));
  CHECK(cost->messages == std::max(most(found.messages_sent), most(found.messages_received)));
  for (auto [latency, per_element] : {std::pair<uint64_t, uint64_t>{1000, 1}, {1, 1000}, {7, 3}})
    CHECK(port_model_time(ranks, latency, per_element)
          <= cost->latencies * latency + cost->serial_elements * per_element);
}

/// What goes from host to host.
struct crossing {
  std::vector<uint64_t> out, in;  ///< Elements, by host.
  std::vector<uint64_t> messages; ///< Sent, by rank.
};

crossing crossing_of(proto::CollectiveKind kind, std::string_view name, const plan_request& request) {
  crossing result{std::vector<uint64_t>(request.world_size), std::vector<uint64_t>(request.world_size),
                  std::vector<uint64_t>(request.world_size)};
  const auto ranks = planned(kind, name, request);
  for (uint32_t rank = 0; rank < request.world_size; ++rank)
    for (auto& x : ranks[rank].steps)
      if (x.what == action::send && request.hosts[rank] != request.hosts[x.peer]) {
        result.out[request.hosts[rank]] += x.source.count;
        result.in[request.hosts[x.peer]] += x.source.count;
        ++result.messages[rank];
      }
  return result;
}

} // namespace

TEST_CASE("hierarchies: five kinds have one, and no other algorithm depends on hosts") {
  CHECK(hierarchical_kinds()
        == std::vector<proto::CollectiveKind>{proto::ALL_REDUCE, proto::BROADCAST, proto::ALL_GATHER,
                                              proto::REDUCE_SCATTER, proto::ALL_TO_ALL});
  for (auto& x : algorithms())
    CHECK((x.name == hierarchical) == x.is.by_hosts);
}

TEST_CASE("hierarchies: right on every layout of up to six ranks, at the cost that is stated") {
  for (auto kind : hierarchical_kinds())
    for (uint32_t n = 2; n <= 6; ++n)
      for (auto& hosts : all_layouts(n))
        for (auto& request : requests_on(kind, hosts))
          check_layout(kind, request);
}

TEST_CASE("hierarchies: right on layouts of up to 16 ranks that are drawn, in a row and mixed") {
  std::mt19937 random{16};
  for (auto kind : hierarchical_kinds())
    for (int trial = 0; trial < 60; ++trial) {
      layout hosts(7 + random() % 10);
      const auto most = 1 + random() % 6;
      for (auto& x : hosts)
        x = static_cast<uint32_t>(random() % most);
      if (trial % 2 == 0)
        std::sort(hosts.begin(), hosts.end());
      for (auto& request : requests_on(kind, hosts))
        check_layout(kind, request);
    }
}

TEST_CASE("hierarchies: on one level they are the ring, the chain and pairs") {
  for (uint32_t n : {2, 3, 5, 8}) {
    const layout apart = [&] {
      layout x;
      for (uint32_t rank = 0; rank < n; ++rank)
        x.push_back(rank);
      return x;
    }();
    const plan_request alone{.world_size = n, .count = 3 * n + 1, .hosts = apart},
      together{.world_size = n, .count = 3 * n + 1};
    CHECK(planned(proto::ALL_REDUCE, hierarchical, alone) == planned(proto::ALL_REDUCE, "ring", together));
    for (auto& x : {alone, together}) {
      CHECK(planned(proto::REDUCE_SCATTER, hierarchical, x) == planned(proto::REDUCE_SCATTER, "pairwise", x));
      CHECK(planned(proto::ALL_TO_ALL, hierarchical, x) == planned(proto::ALL_TO_ALL, "pairwise", x));
    }
    for (uint64_t chunk : {0, 2}) {
      auto chained = alone;
      chained.root = n / 2;
      chained.chunk = chunk;
      CHECK(planned(proto::BROADCAST, hierarchical, chained) == planned(proto::BROADCAST, "chain", chained));
    }
  }
}

TEST_CASE("hierarchies: what goes across goes once") {
  for (auto& sizes :
       std::vector<std::vector<uint32_t>>{{4, 4}, {4, 4, 4, 4}, {3, 3, 3}, {4, 2, 3}, {1, 5}, {5, 1, 1}}) {
    const auto hosts = layout_of(sizes);
    const auto n = static_cast<uint32_t>(hosts.size()), h = static_cast<uint32_t>(sizes.size());
    CAPTURE(fmt::format("{}", fmt::join(sizes, ",")));
    const uint64_t count = 60 * 12;
    const plan_request whole{.world_size = n, .count = count, .hosts = hosts};
    const plan_request block{.world_size = n, .count = 7, .hosts = hosts};
    const auto reduced = crossing_of(proto::ALL_REDUCE, hierarchical, whole);
    const auto scattered = crossing_of(proto::REDUCE_SCATTER, hierarchical, block);
    const auto gathered = crossing_of(proto::ALL_GATHER, hierarchical, block);
    const auto sent = crossing_of(proto::BROADCAST, hierarchical, whole);
    const auto swapped = crossing_of(proto::ALL_TO_ALL, hierarchical, block);
    for (uint32_t host = 0; host < h; ++host) {
      CHECK(reduced.out[host] <= 2 * (h - 1) * (count / h + 2 * n));
      CHECK(reduced.out[host] >= 2 * (h - 1) * (count / h - 2 * n));
      CHECK(scattered.out[host] == 7 * (n - sizes[host]));
      CHECK(gathered.in[host] == 7 * (n - sizes[host]));
      CHECK(sent.in[host] == (host == 0 ? 0 : count));
      CHECK(swapped.out[host] == 7 * sizes[host] * (n - sizes[host]));
    }
    for (uint32_t rank = 0; rank < n; ++rank) // one message for each of the ranks that it deals with
      CHECK(swapped.messages[rank] == host_map{whole}.partners(rank).size());
  }
}

TEST_CASE("hierarchies: on two hosts of four, a flat ring's neighbours cross once, its pairs four times as much") {
  const plan_request block{.world_size = 8, .count = 5, .hosts = layout_of({4, 4})};
  CHECK(crossing_of(proto::REDUCE_SCATTER, "pairwise", block).out[0] == 4 * 4 * 5);
  CHECK(crossing_of(proto::REDUCE_SCATTER, hierarchical, block).out[0] == 4 * 5);
  CHECK(crossing_of(proto::ALL_TO_ALL, "pairwise", block).messages == std::vector<uint64_t>(8, 4));
  CHECK(crossing_of(proto::ALL_TO_ALL, hierarchical, block).messages == std::vector<uint64_t>(8, 1));
}

TEST_CASE("hierarchies: all ranks end with the same bits; in rank order with those of a loop over the ranks") {
  std::mt19937_64 random{7};
  std::uniform_real_distribution<double> digits{-1, 1};
  for (auto kind : {proto::ALL_REDUCE, proto::REDUCE_SCATTER})
    for (auto& sizes : std::vector<std::vector<uint32_t>>{{5}, {2, 2}, {4, 4}, {3, 1, 2}, {1, 6}, {2, 3, 4}})
      for (bool in_rank_order : {false, true}) {
        const auto hosts = layout_of(sizes);
        const auto n = static_cast<uint32_t>(hosts.size());
        const plan_request request{.world_size = n, .count = 13, .hosts = hosts};
        CAPTURE(text_of_request(kind, request));
        const auto counts = buffer_counts_of(kind, request);
        auto ranks = in_rank_order ? plan_all_in_rank_order(kind, hierarchical, request)
                                   : plan_all(kind, hierarchical, request);
        REQUIRE(ranks);
        const auto order = in_rank_order ? addition_order::ranks : addition_order::any;
        const auto found = prove(kind, request, *ranks, 3, order);
        REQUIRE_MESSAGE(!found.fault, render(found.fault));
        std::vector<rank_memory<double>> memory(n);
        for (auto& rank : memory)
          for (uint64_t i = 0; i < counts[0].input; ++i)
            rank.input.push_back(std::ldexp(digits(random), static_cast<int>(random() % 40)));
        auto walked = interpret_on(memory, *ranks, counts, n, std::plus<double>{}, [&](double sum) { return sum / n; });
        REQUIRE_MESSAGE(!walked.fault, render(walked.fault));
        for (uint32_t rank = 0; rank < n; ++rank)
          for (uint64_t i = 0; i < counts[rank].output; ++i) {
            if (kind == proto::ALL_REDUCE)
              CHECK(memory[rank].output[i] == memory[0].output[i]);
            const auto from = meaning_of(kind, request, rank, i).index;
            auto sum = memory[0].input[from];
            for (uint32_t k = 1; k < n; ++k)
              sum += memory[k].input[from];
            if (in_rank_order)
              CHECK(memory[rank].output[i] == sum / n);
            else
              CHECK(memory[rank].output[i] == doctest::Approx(sum / n));
          }
      }
}

TEST_CASE("hierarchies: rank order plans follow the hosts of the ranks, not an earlier request") {
  const plan_request two{.world_size = 6, .count = 12, .hosts = layout_of({3, 3})};
  auto three = two;
  three.hosts = layout_of({2, 2, 2});
  for (auto& request : {two, three, two}) {
    auto all = plan_all_in_rank_order(proto::ALL_REDUCE, hierarchical, request);
    REQUIRE(all);
    for (uint32_t rank = 0; rank < 6; ++rank) {
      auto mine = request;
      mine.rank = rank;
      CHECK(*plan_in_rank_order(proto::ALL_REDUCE, hierarchical, mine) == (*all)[rank]);
    }
  }
}

TEST_CASE("hierarchies: hosts that do not fit the ranks are refused, and numbers may be left out") {
  plan_request request{.world_size = 3, .count = 4, .hosts = {0, 1}};
  CHECK(render(plan(proto::ALL_REDUCE, hierarchical, request).error())
        == "the hosts of 2 ranks are known, and there are 3");
  request.hosts = {0, 3, 1};
  CHECK(render(plan(proto::ALL_REDUCE, hierarchical, request).error())
        == "rank 1 is on host 3: hosts are numbered from 0, and 3 ranks have no more than 3");
  request.hosts = {2, 0, 2};
  auto other = request;
  other.hosts = {0, 1, 0};
  CHECK(planned(proto::ALL_REDUCE, hierarchical, request) == planned(proto::ALL_REDUCE, hierarchical, other));
}
