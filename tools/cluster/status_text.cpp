#include "tools/cluster/status_text.hpp"

#include "messages/wire_ids.hpp"
#include "runtime/text/endpoint.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/cluster/communicator_text.hpp"
#include "tools/cluster/info_text.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <set>

namespace ringmaster {

namespace {

using proto::ClusterInfo;

std::string first_line(const proto::ClusterStatus& x, const std::string& coordinator, std::chrono::seconds utc_offset) {
  auto& cluster = x.cluster();
  std::set<std::string> hosts;
  for (auto& node : cluster.nodes())
    hosts.insert(node.hostname());
  auto free = std::ranges::count_if(cluster.devices(), [](auto& y) { return y.comm_ids().empty(); });
  return fmt::format("{} coordinator at {}: {} on {}, {} ({} free), {}", time_text(x.time_ns(), utc_offset),
                     coordinator, counted(static_cast<uint64_t>(cluster.nodes_size()), "node"),
                     counted(hosts.size(), "host"), counted(static_cast<uint64_t>(cluster.devices_size()), "device"),
                     free, counted(static_cast<uint64_t>(x.communicators_size()), "communicator"));
}

std::string device_text(const proto::ClusterStatus& x, const ClusterInfo::Device& device) {
  std::vector<std::string> places;
  for (auto& communicator : x.communicators())
    for (int rank = 0; rank < communicator.ranks_size(); ++rank)
      if (communicator.ranks(rank).device_id() == device.metadata().deviceid().value())
        places.push_back(fmt::format("rank {} of communicator {}", rank, communicator.comm_id()));
  return fmt::format("0x{:x} ({})", device.metadata().deviceid().value(),
                     places.empty() ? "free" : fmt::format("{}", fmt::join(places, ", ")));
}

void add_node(const proto::ClusterStatus& x, const ClusterInfo::Node& node, std::vector<status_line>& out) {
  std::vector<std::string> devices;
  for (auto& device : x.cluster().devices())
    if (device.node_id() == node.node_id())
      devices.push_back(device_text(x, device));
  auto here = x.time_ns() > node.joined_ns() ? x.time_ns() - node.joined_ns() : 0;
  auto text = place_text(node);
  if (node.port() != 0)
    text += fmt::format(", at {}", text_of(endpoint{node.host(), static_cast<uint16_t>(node.port())}));
  text += fmt::format(", here for {}: ", age_text(here));
  if (node.draining())
    text += "is drained, with ";
  text += devices.empty() ? "no device" : fmt::format("{}", fmt::join(devices, ", "));
  constexpr uint64_t a_while_ns = 500'000'000;
  if (node.silent_ns() >= a_while_ns)
    text += fmt::format("; it has been silent for {}: its process is paused, or the network is",
                        age_text(node.silent_ns()));
  else if (node.silent_ns() > 0)
    text += "; it does not answer at once: its process is busy or paused, or the network is slow";
  bool complete = devices.size() >= node.devices_announced();
  if (!complete)
    text += fmt::format(", {} of its {}", devices.size(), counted(node.devices_announced(), "device"));
  auto how = node.silent_ns() > 0 ? tone::bad : complete ? tone::plain : tone::warning;
  out.push_back({how, std::move(text)});
  for (auto& peer : node.apart())
    out.push_back({tone::warning, "  " + apart_text(peer)});
}

} // namespace

std::vector<status_line> status_text(const proto::ClusterStatus& x, const std::string& coordinator,
                                     std::chrono::seconds utc_offset, const page_format& page) {
  constexpr int gone_shown_max = 5;
  std::vector<status_line> result{{tone::plain, first_line(x, coordinator, utc_offset)}};
  if (!x.cluster().journal_trouble().empty())
    result.push_back({tone::warning, x.cluster().journal_trouble()});
  for (auto& communicator : x.communicators())
    add_communicator(communicator, x.cluster(), page, result);
  for (auto* node : nodes_by_name(x.cluster()))
    add_node(x, *node, result);
  auto& gone = x.cluster().gone();
  if (gone.size() > gone_shown_max)
    result.push_back({tone::plain,
                      fmt::format("{} earlier losses are listed by `ringmaster info`", gone.size() - gone_shown_max)});
  for (int i = std::max(0, gone.size() - gone_shown_max); i < gone.size(); ++i)
    result.push_back({gone[i].left() ? tone::plain : tone::warning, "gone " + gone_text(gone[i], utc_offset)});
  return result;
}

} // namespace ringmaster
