#include "runtime/selection/host_costs.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
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
    auto planned = plan(which.kind, which.name, of_rank);
    if (!planned)
      return std::move(planned.error());
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

} // namespace ringmaster
