#include "tools/clients/rank_layout.hpp"

#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace ringmaster {

namespace {

/// "0-3, 6": ascending.
std::string ranges_text(const std::vector<uint32_t>& ranks) {
  std::string result;
  for (size_t first = 0, next = 0; first < ranks.size(); first = next) {
    for (next = first + 1; next < ranks.size() && ranks[next] == ranks[next - 1] + 1;)
      ++next;
    result += fmt::format("{}{}", result.empty() ? "" : ", ", ranks[first]);
    if (next - first > 1)
      result += fmt::format("-{}", ranks[next - 1]);
  }
  return result;
}

std::string node_text(const rank_layout::place& x) {
  if (x.node_name.empty())
    return "a node that has left";
  return fmt::format("{}{}, process {}", x.node_name, x.host.empty() ? "" : ", host " + x.host, x.pid);
}

} // namespace

rank_layout::rank_layout(const gpu_sim::CommInitResponse& group, const proto::ClusterInfo& cluster) {
  std::map<device_id, node_id> node_of;
  for (auto& x : cluster.devices())
    node_of[id_of(x.metadata())] = node_id{x.node_id()};
  for (auto& x : group.devices()) {
    place here{.device = id_of(x), .node = node_of[id_of(x)]};
    auto node = std::ranges::find(cluster.nodes(), here.node, [](auto& y) { return node_id{y.node_id()}; });
    if (node != cluster.nodes().end()) {
      here.node_name = node->name();
      here.host = node->hostname();
      here.pid = node->pid();
    }
    ranks_.push_back(std::move(here));
  }
  ensure(ranks_.size() == static_cast<size_t>(group.devices_size()), "each device of the group has a rank");
}

std::string rank_layout::summary() const {
  std::map<node_id, uint64_t> ranks_of;
  std::set<std::string> hosts;
  for (auto& x : ranks_) {
    ++ranks_of[x.node];
    if (!x.host.empty())
      hosts.insert(x.host);
  }
  std::map<uint64_t, uint64_t, std::greater<>> nodes_of; // by their number of ranks
  for (auto [node, ranks] : ranks_of)
    ++nodes_of[ranks];
  std::string nodes;
  for (auto [ranks, count] : nodes_of)
    nodes += fmt::format("{}{} of {}", nodes.empty() ? "" : " and ", counted(count, "node"), ranks);
  return fmt::format("{}: {}{}", counted(ranks_.size(), "rank"), nodes,
                     hosts.empty() ? "" : " on " + counted(hosts.size(), "host"));
}

std::vector<std::string> rank_layout::nodes() const {
  std::vector<std::pair<const place*, std::vector<uint32_t>>> nodes;
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    auto known = std::ranges::find(nodes, ranks_[rank].node, [](auto& x) { return x.first->node; });
    if (known == nodes.end())
      known = nodes.insert(nodes.end(), {&ranks_[rank], {}});
    known->second.push_back(rank);
  }
  std::vector<std::string> result;
  for (auto& [node, ranks] : nodes)
    result.push_back(fmt::format("rank{} {} on {}", ranks.size() == 1 ? "" : "s", ranges_text(ranks),
                                 node_text(*node)));
  return result;
}

bool rank_layout::all_on(const std::string& host) const {
  return std::ranges::all_of(ranks_, [&](auto& x) { return x.host == host; });
}

} // namespace ringmaster
