#include "tools/bench/bench_group.hpp"

#include "messages/errc.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/bench/bench_sizes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace ringmaster {

namespace {

using device_entry = proto::ClusterInfo::Device;

/// The free ones, as CommInit takes them: with the lowest ids first.
std::vector<const device_entry*> free_devices(const proto::ClusterInfo& cluster) {
  std::vector<const device_entry*> result;
  for (auto& x : cluster.devices())
    if (x.comm_ids().empty())
      result.push_back(&x);
  std::ranges::sort(result, {}, [](auto* x) { return x->metadata().deviceid().value(); });
  return result;
}

caf::error too_few(uint32_t wanted, size_t free, const proto::ClusterInfo& cluster) {
  auto here = static_cast<uint64_t>(cluster.devices_size());
  std::set<uint64_t> takers;
  for (auto& x : cluster.devices())
    takers.insert(x.comm_ids().begin(), x.comm_ids().end());
  auto text = fmt::format("the bench wants {}, and the cluster has {}", counted(wanted, "device"),
                          counted(here, "device"));
  if (!takers.empty())
    text += fmt::format(", of which {} {} free: the others belong to {} {}, which `ringmaster destroy {}` ends", free,
                        free == 1 ? "is" : "are", takers.size() == 1 ? "communicator" : "communicators",
                        fmt::join(takers, ", "), fmt::join(takers, " "));
  return make_error(errc::too_few_devices, text);
}

/// Root and peer are ranks of the group.
caf::error fit_ranks(bench_options& x) {
  if (x.root >= x.devices)
    return make_error(errc::invalid_argument, fmt::format("--root {}: on {} ranks are 0 to {}", x.root,
                                                          counted(x.devices, "device"), x.devices - 1));
  if (!x.peer_given)
    x.peer = (x.root + 1) % x.devices;
  if (x.peer >= x.devices)
    return make_error(errc::invalid_argument, fmt::format("--peer {}: on {} ranks are 0 to {}", x.peer,
                                                          counted(x.devices, "device"), x.devices - 1));
  return caf::none;
}

caf::error fit_sizes(bench_options& x, uint64_t memory_bytes) {
  auto sizes = sizes_of(x);
  auto fits = [&](uint64_t bytes) {
    auto smaller = x;
    smaller.max_bytes = bytes;
    return memory_for(smaller) <= memory_bytes;
  };
  auto last = std::ranges::find_if(sizes.rbegin(), sizes.rend(), fits);
  if (last == sizes.rbegin())
    return caf::none;
  if (!x.max_bytes_given && last != sizes.rend()) {
    x.max_bytes = *last;
    return caf::none;
  }
  return make_error(
    errc::out_of_memory,
    fmt::format("{} wants {} of memory on each device, and these have {}: {}a larger device.memory-bytes "
                "for the nodes",
                bytes_text(sizes.back()), bytes_text(memory_for(x)), bytes_text(memory_bytes),
                last == sizes.rend() ? "" : fmt::format("--max-bytes {} at most, or ", *last)));
}

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

std::string node_text(uint64_t id, const proto::ClusterInfo& cluster) {
  for (auto& x : cluster.nodes())
    if (x.node_id() == id)
      return fmt::format("{}{}, process {}", x.name(), x.hostname().empty() ? "" : ", host " + x.hostname(), x.pid());
  return "a node that is gone";
}

} // namespace

caf::error fit_to_cluster(bench_options& x, const proto::ClusterInfo& cluster) {
  auto free = free_devices(cluster);
  const uint32_t at_least = x.devices_given ? x.devices : 2;
  if (free.size() < at_least)
    return too_few(at_least, free.size(), cluster);
  x.devices = static_cast<uint32_t>(std::min<size_t>(x.devices, free.size()));
  if (auto problem = fit_ranks(x))
    return problem;
  uint64_t memory_bytes = UINT64_MAX;
  for (uint32_t rank = 0; rank < x.devices; ++rank) {
    auto& memory = free[rank]->metadata();
    memory_bytes = std::min(memory_bytes, memory.maxmemaddr().value() - memory.minmemaddr().value());
  }
  return fit_sizes(x, memory_bytes);
}

std::string placement_text(const gpu_sim::CommInitResponse& group, const proto::ClusterInfo& cluster) {
  std::map<uint64_t, uint64_t> node_of;
  for (auto& x : cluster.devices())
    node_of[x.metadata().deviceid().value()] = x.node_id();
  std::vector<std::pair<uint64_t, std::vector<uint32_t>>> nodes; // in the order of their first ranks
  for (uint32_t rank = 0; rank < static_cast<uint32_t>(group.devices_size()); ++rank) {
    auto node = node_of[group.devices(static_cast<int>(rank)).deviceid().value()];
    auto known = std::ranges::find(nodes, node, [](auto& y) { return y.first; });
    if (known == nodes.end())
      known = nodes.insert(nodes.end(), {node, {}});
    known->second.push_back(rank);
  }
  std::string result;
  for (auto& [node, ranks] : nodes)
    result += fmt::format("# rank{} {} on {}\n", ranks.size() == 1 ? "" : "s", ranges_text(ranks),
                          node_text(node, cluster));
  return result;
}

} // namespace ringmaster
