#include "gateway/http/state/topology.hpp"

#include "runtime/algorithms/registry.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace ringmaster::gateway {

namespace {

using edge = std::pair<uint32_t, uint32_t>; // sender, receiver

/// One element for each block, so that every rank takes part.
plan_request request_for(proto::CollectiveKind kind, uint32_t ranks) {
  plan_request result;
  result.world_size = ranks;
  result.count = has_v_variant(kind) ? 1 : ranks;
  if (kind == proto::SEND_RECV)
    result.peer = ranks - 1;
  return result;
}

bool is_ring(const std::set<edge>& edges, uint32_t ranks) {
  return edges.size() == ranks && std::ranges::all_of(edges, [ranks](const edge& x) {
           return x.second == (x.first + 1) % ranks || x.first == (x.second + 1) % ranks;
         });
}

/// Whether the edges without their direction are a tree of all ranks.
bool is_tree(const std::set<edge>& edges, uint32_t ranks) {
  std::set<edge> links;
  for (auto [from, to] : edges)
    links.insert(std::minmax(from, to));
  if (links.size() + 1 != ranks)
    return false;
  std::vector<std::vector<uint32_t>> neighbours(ranks);
  for (auto [a, b] : links) {
    neighbours[a].push_back(b);
    neighbours[b].push_back(a);
  }
  std::set<uint32_t> reached{0};
  std::vector<uint32_t> open{0};
  while (!open.empty()) {
    const auto rank = open.back();
    open.pop_back();
    for (auto next : neighbours[rank])
      if (reached.insert(next).second)
        open.push_back(next);
  }
  return reached.size() == ranks;
}

std::set<edge> edges_of(proto::CollectiveKind kind, const std::string& algorithm, uint32_t ranks) {
  std::set<edge> result;
  auto request = request_for(kind, ranks);
  for (uint32_t rank = 0; rank < ranks && result.size() <= topology_cache::edges_max; ++rank) {
    request.rank = rank;
    auto planned = plan(kind, algorithm, request);
    if (!planned)
      return {};
    for (auto& step : planned->steps)
      if (step.what == action::send)
        result.emplace(rank, step.peer);
  }
  return result;
}

json graph_of(proto::CollectiveKind kind, const std::string& algorithm, uint32_t ranks) {
  const auto edges = ranks < 2 || ranks > topology_cache::ranks_max ? std::set<edge>{}
                                                                    : edges_of(kind, algorithm, ranks);
  json result;
  result["shape"] = edges.empty() ? "none" : is_ring(edges, ranks) ? "ring" : is_tree(edges, ranks) ? "tree" : "graph";
  result["kind"] = name_of(kind);
  result["algorithm"] = algorithm;
  auto& list = result["edges"] = json::array();
  for (auto [from, to] : edges) {
    if (list.size() == topology_cache::edges_max)
      break;
    list.push_back({from, to});
  }
  result["truncated"] = edges.size() > topology_cache::edges_max;
  return result;
}

} // namespace

const json& topology_cache::of(proto::CollectiveKind kind, const std::string& algorithm, uint32_t ranks) {
  const std::tuple key{static_cast<int>(kind), algorithm, ranks};
  if (auto known = graphs_.find(key); known != graphs_.end())
    return known->second;
  if (graphs_.size() == graphs_max) // names of algorithms come from clients
    graphs_.clear();
  return graphs_.emplace(key, graph_of(kind, algorithm, ranks)).first->second;
}

caf::expected<json> schedule_json(const std::string& kind_name, const std::string& algorithm, uint32_t ranks) {
  constexpr size_t rounds_max = 256;
  auto kind = parse_collective_kind(kind_name);
  if (!kind)
    return std::move(kind.error());
  auto planned = plan_all(*kind, algorithm, request_for(*kind, ranks));
  if (!planned)
    return std::move(planned.error());
  std::vector<std::set<edge>> rounds;
  size_t edges = 0;
  bool truncated = false;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    for (auto& step : (*planned)[rank].steps) {
      if (step.what != action::send)
        continue;
      truncated = truncated || step.round >= rounds_max || edges >= 4 * topology_cache::edges_max;
      if (step.round >= rounds_max || edges >= 4 * topology_cache::edges_max)
        continue;
      rounds.resize(std::max<size_t>(rounds.size(), step.round + 1));
      edges += rounds[step.round].emplace(rank, step.peer).second ? 1 : 0;
    }
  json result{{"kind", name_of(*kind)}, {"algorithm", algorithm}, {"ranks", ranks}};
  auto& list = result["rounds"] = json::array();
  for (auto& round : rounds) {
    auto& pairs = list.emplace_back(json::array());
    for (auto [from, to] : round)
      pairs.push_back({from, to});
  }
  result["truncated"] = truncated;
  return result;
}

} // namespace ringmaster::gateway
