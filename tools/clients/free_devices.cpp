#include "tools/clients/free_devices.hpp"

#include "actors/scheduling/awake_clock.hpp"
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <thread>
#include <utility>

namespace ringmaster {

std::vector<const proto::ClusterInfo::Device*> free_devices(const proto::ClusterInfo& cluster) {
  std::vector<const proto::ClusterInfo::Device*> result;
  for (auto& x : cluster.devices())
    if (x.comm_ids().empty())
      result.push_back(&x);
  std::ranges::sort(result, {}, [](auto* x) { return x->metadata().deviceid().value(); });
  return result;
}

uint64_t least_memory_bytes(const std::vector<const proto::ClusterInfo::Device*>& devices) {
  uint64_t result = UINT64_MAX;
  for (auto* x : devices)
    result = std::min(result, x->metadata().maxmemaddr().value() - x->metadata().minmemaddr().value());
  return result;
}

caf::error check_free(const std::string& who, uint64_t wanted, const proto::ClusterInfo& cluster) {
  const auto free = free_devices(cluster).size();
  if (free >= wanted)
    return caf::none;
  std::set<uint64_t> owners;
  for (auto& x : cluster.devices())
    owners.insert(x.comm_ids().begin(), x.comm_ids().end());
  auto text = fmt::format("{} wants {}, and the cluster has {}", who, counted(wanted, "device"),
                          counted(static_cast<uint64_t>(cluster.devices_size()), "device"));
  if (!owners.empty())
    text += fmt::format(", of which {} {} free: the others belong to {} {}, which `ringmaster destroy {}` ends", free,
                        free == 1 ? "is" : "are", owners.size() == 1 ? "communicator" : "communicators",
                        fmt::join(owners, ", "), fmt::join(owners, " "));
  return make_error(errc::too_few_devices, text);
}

caf::expected<proto::ClusterInfo> await_free(client& user, const std::string& who, uint64_t wanted,
                                             caf::timespan patience, std::FILE* err) {
  const auto give_up = awake_clock::actor_now() + patience;
  for (auto reported = false;; std::this_thread::sleep_for(std::chrono::milliseconds{50})) {
    TRY(cluster, user.devices());
    auto problem = check_free(who, wanted, *cluster);
    if (!problem)
      return cluster;
    if (awake_clock::actor_now() >= give_up)
      return problem;
    if (!std::exchange(reported, true))
      fmt::print(err, "ringmaster {}: {} free, {} wanted: waits {} for the others\n", who,
                 counted(free_devices(*cluster).size(), "device"), wanted, duration_text(patience));
  }
}

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
