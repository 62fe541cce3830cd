#include "runtime/selection/selection.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/algorithms/parts/pieces.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/schedule/bus_bandwidth.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

namespace ringmaster {

namespace {

constexpr uint32_t ranks_planned_max = 256;
constexpr uint64_t messages_planned_max = uint64_t{1}
                                          << 18; ///< A ring of 256 ranks has half of that, which takes milliseconds.

/// Outgoing and incoming load, by rank or by host.
struct port_loads {
  explicit port_loads(size_t ports) : out(ports), in(ports) {}

  std::vector<uint64_t> out, in;

  void add(uint32_t from, uint32_t to, uint64_t amount) {
    out[from] += amount;
    in[to] += amount;
  }
  double busiest() const {
    return static_cast<double>(std::max(*std::max_element(out.begin(), out.end()),
                                        *std::max_element(in.begin(), in.end())));
  }
};

/// The elements of one round.
struct round_load {
  explicit round_load(size_t ranks) : across(ranks), within(ranks) {}

  port_loads across, within; ///< By host; by rank.
  bool crosses = false, stays = false;

  void add(const std::vector<uint32_t>& hosts, uint32_t rank, const step& x) {
    auto inside = hosts[rank] == hosts[x.peer];
    (inside ? stays : crosses) = true;
    if (inside)
      within.add(rank, x.peer, x.source.count);
    else
      across.add(hosts[rank], hosts[x.peer], x.source.count);
  }
};

} // namespace

std::vector<double> host_work::features() const {
  return {1, across.latencies, across.bytes, messages, within.latencies, within.bytes};
}

bool has_two_levels(const plan_request& request) {
  std::set<uint32_t> hosts(request.hosts.begin(), request.hosts.end());
  return hosts.size() > 1 && hosts.size() < request.world_size && request.world_size <= ranks_planned_max;
}

bool can_be_planned(const algorithm_cost& cost, const plan_request& request) {
  return cost.messages <= messages_planned_max / request.world_size;
}

caf::expected<host_work> work_on_hosts(const algorithm& which, const plan_request& request, uint64_t element_bytes) {
  const auto& hosts = request.hosts;
  ensure(hosts.size() == request.world_size, "every rank has a host");
  std::vector<round_load> rounds;
  port_loads messages{request.world_size};
  for (uint32_t rank = 0; rank < request.world_size; ++rank) {
    auto of_rank = request;
    of_rank.rank = rank;
    TRY(planned, plan(which.kind, which.name, of_rank));
    rounds.resize(std::max<size_t>(rounds.size(), planned->rounds), round_load{request.world_size});
    for (const auto& x : planned->steps) {
      ensure(x.round < rounds.size(), "a step is in one of its schedule's rounds");
      if (x.what != action::send)
        continue;
      rounds[x.round].add(hosts, rank, x);
      if (hosts[rank] != hosts[x.peer])
        messages.add(hosts[rank], hosts[x.peer], 1);
    }
  }
  host_work result;
  result.messages = messages.busiest();
  for (const auto& load : rounds) {
    auto& level = load.crosses ? result.across : result.within;
    level.latencies += load.crosses || load.stays ? 1 : 0;
    level.bytes += static_cast<double>(element_bytes) * (load.crosses ? load.across : load.within).busiest();
  }
  return result;
}

namespace {

/// The elements that the root, or rank 0, reduces.
caf::expected<uint64_t> reduced_elements(const algorithm& which, plan_request request) {
  request.rank = has_root(which.kind) ? request.root : 0;
  TRY(planned, plan(which.kind, which.name, request));
  uint64_t elements = 0;
  for (const auto& x : planned->steps)
    if (x.what == action::recv_reduce || x.what == action::reduce)
      elements += x.destination.count;
  return elements;
}

caf::expected<candidate> estimate(const algorithm& which, const plan_request& request, uint64_t element_bytes,
                                  const cost_constants& constants) {
  TRY(cost, cost_of(which.kind, which.name, request));
  candidate result{&which, *cost, {}, request.chunk};
  if (has_two_levels(request) && can_be_planned(*cost, request)) {
    TRY(work, work_on_hosts(which, request, element_bytes));
    result.time.latency_s = work->across.latencies * constants.latency_s
                            + work->within.latencies * constants.host_latency_s;
    result.time.transfer_s = work->across.bytes / constants.bandwidth + work->within.bytes / constants.host_bandwidth;
    result.on_hosts = *work;
  } else {
    result.time.latency_s = static_cast<double>(cost->latencies) * constants.latency_s;
    result.time.transfer_s = static_cast<double>(cost->serial_elements * element_bytes) / constants.bandwidth;
  }
  const auto messages = result.on_hosts ? result.on_hosts->messages : static_cast<double>(cost->messages);
  result.time.overhead_s = constants.operation_s + static_cast<double>(cost->rounds) * constants.round_overhead_s
                           + messages * constants.message_overhead_s;
  if (reduces(which.kind) && constants.reduction_rate < std::numeric_limits<double>::infinity()) {
    TRY(elements, reduced_elements(which, request));
    result.time.reduction_s = static_cast<double>(*elements * element_bytes) / constants.reduction_rate;
  }
  return result;
}

/// The elements in flight on a link.
uint64_t elements_under_way(uint64_t element_bytes, const cost_constants& constants) {
  const auto elements = constants.latency_s * constants.bandwidth / static_cast<double>(element_bytes);
  return std::bit_ceil(static_cast<uint64_t>(std::clamp(elements, 1.0, 0x1p62)));
}

} // namespace

caf::expected<uint64_t> chunk_for(const algorithm& which, const plan_request& request, uint64_t element_bytes,
                                  const cost_constants& constants) {
  if (!which.is.in_chunks || request.chunk != 0 || request.count == 0)
    return request.chunk;
  ensure(element_bytes > 0 && constants.bandwidth > 0, "elements and bandwidths are above 0");
  const auto whole = std::bit_ceil(request.count); // at most 2^63, which `check_request` ensures
  auto cut = request;
  if (!which.is.by_hosts)
    cut.hosts.clear(); // planning every rank for each size would take longer than many operations
  uint64_t best = whole;
  auto least = std::numeric_limits<double>::infinity();
  for (cut.chunk = whole; cut.chunk > 0; cut.chunk /= 2) {
    TRY(x, estimate(which, cut, element_bytes, constants));
    const auto time = x->time.total_s();
    if (time > least) // smaller pieces only add latencies
      break;
    if (time < least)
      best = cut.chunk;
    least = time;
  }
  ensure(std::has_single_bit(best) && best <= whole, "a piece is a power of two, at most the whole");
  if (best == whole && reduces(which.kind))
    best = std::min(whole, elements_under_way(element_bytes, constants));
  return best == whole && default_chunk >= request.count ? 0 : best;
}

caf::expected<std::vector<candidate>> sorted_candidates(
  proto::CollectiveKind kind, const plan_request& request,
  const std::function<caf::expected<candidate>(const algorithm&)>& estimate) {
  RETURN_ERROR(check_request(kind, request));
  std::vector<candidate> result;
  auto refusal = invalid(fmt::format("there is no algorithm for {}", name_of(kind)));
  for (const auto& which : algorithms()) {
    if (which.kind != kind)
      continue;
    if (auto refused = which.check != nullptr ? which.check(request) : caf::error{}) {
      refusal = std::move(refused);
      continue;
    }
    TRY(x, estimate(which));
    ensure(x->which == &which, "an estimate is of the algorithm asked for");
    ensure(!(x->time.total_s() < 0), "an estimate is not negative");
    result.push_back(*x);
  }
  if (result.empty())
    return refusal;
  std::stable_sort(result.begin(), result.end(), [](auto& a, auto& b) { return a.time.total_s() < b.time.total_s(); });
  return result;
}

caf::expected<std::vector<candidate>> candidates(proto::CollectiveKind kind, const plan_request& request,
                                                 uint64_t element_bytes, const cost_constants& constants) {
  return sorted_candidates(kind, request, [&](const algorithm& which) -> caf::expected<candidate> {
    TRY(chunk, chunk_for(which, request, element_bytes, constants));
    auto in_pieces = request;
    in_pieces.chunk = *chunk;
    return estimate(which, in_pieces, element_bytes, constants);
  });
}

caf::expected<candidate> select_algorithm(proto::CollectiveKind kind, const plan_request& request,
                                          uint64_t element_bytes, const cost_constants& constants) {
  TRY(all, candidates(kind, request, element_bytes, constants));
  ensure(!all->empty(), "a kind without algorithms is an error");
  return all->front();
}

caf::expected<std::vector<selection_range>> selection_by_size(proto::CollectiveKind kind, plan_request request,
                                                              uint64_t element_bytes, const cost_constants& constants,
                                                              uint64_t elements_max) {
  std::vector<selection_range> result;
  for (uint64_t elements = 1; elements <= elements_max; elements *= 2) {
    request.count = count_for_size(kind, request.world_size, elements);
    if (request.count == 0)
      continue;
    TRY(best, select_algorithm(kind, request, element_bytes, constants));
    if (result.empty() || result.back().which != best->which)
      result.push_back({elements, best->which});
  }
  return result;
}

} // namespace ringmaster
