#include "tools/cluster/info_text.hpp"

#include "messages/message_json.hpp"
#include "messages/wire_ids.hpp"
#include "runtime/schedule/collective.hpp"
#include "runtime/text/endpoint.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/text/utf8.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <vector>

namespace ringmaster {

namespace {

using proto::ClusterInfo;

const ClusterInfo::Communicator* communicator(const ClusterInfo& cluster, communicator_id id) {
  auto found = std::ranges::find(cluster.communicators(), id.value, [](auto& x) { return x.comm_id(); });
  return found == cluster.communicators().end() ? nullptr : &*found;
}

/// "rank 2 of communicator 7".
std::string rank_text(const ClusterInfo& cluster, device_id device, communicator_id id) {
  auto known = communicator(cluster, id);
  auto rank = known == nullptr ? -1
                               : std::ranges::find(known->device_ids(), device.value) - known->device_ids().begin();
  if (known == nullptr || !known->silent().empty() || rank == known->device_ids_size())
    return fmt::format("in communicator {}", id);
  return fmt::format("rank {} of communicator {}", rank, id);
}

std::string device_text(const ClusterInfo& cluster, const ClusterInfo::Device& x) {
  std::vector<std::string> places;
  for (auto number : x.comm_ids())
    places.push_back(rank_text(cluster, id_of(x.metadata()), communicator_id{number}));
  auto& memory = x.metadata();
  return fmt::format("  device {:#x} {}, {}\n", id_of(x.metadata()),
                     bytes_text(memory.maxmemaddr().value() - memory.minmemaddr().value()),
                     places.empty() ? "free" : fmt::format("{}", fmt::join(places, ", ")));
}

std::string node_text(const ClusterInfo& cluster, const ClusterInfo::Node& node) {
  auto result = fmt::format("{}, process {}", node.name(), node.pid());
  if (!node.hostname().empty())
    result += fmt::format(" on {}", node.hostname());
  if (node.port() != 0)
    result += fmt::format(", at {}", text_of(endpoint{node.host(), static_cast<uint16_t>(node.port())}));
  std::string devices;
  uint32_t here = 0;
  for (auto& x : cluster.devices())
    if (x.node_id() == node.node_id()) {
      devices += device_text(cluster, x);
      ++here;
    }
  if (here < node.devices_announced())
    result += fmt::format(", {} of its {} here", here, counted(node.devices_announced(), "device"));
  result += '\n';
  for (auto& x : node.apart())
    result += "  " + apart_text(x) + "\n";
  return result + devices;
}

std::string name_text(const ClusterInfo::Communicator& x) {
  return named_communicator(x.comm_id(), x.name());
}

/// A communicator that is kept until it is destroyed. Its operations have failed for the same reason, which is printed
/// once.
std::string ended_text(const ClusterInfo& cluster, const ClusterInfo::Communicator& x, const std::string& kind) {
  std::vector<device_id> left;
  for (auto number : x.device_ids())
    if (std::ranges::any_of(cluster.devices(), [&](auto& y) { return id_of(y.metadata()) == device_id{number}; }))
      left.push_back(device_id{number});
  auto devices = left.empty() ? "none of its devices is left"
                              : fmt::format("it still has 0x{:x}", fmt::join(left, " 0x"));
  return fmt::format("{}: ended in epoch {}, {}; {}\n  {}\n", name_text(x), x.epoch(), devices, kind, x.async_error());
}

std::string communicator_text(const ClusterInfo& cluster, const ClusterInfo::Communicator& x) {
  auto ranks = fmt::format("{} on 0x{:x}", counted(static_cast<uint64_t>(x.device_ids_size()), "rank"),
                           fmt::join(x.device_ids(), " 0x"));
  auto kind = fmt::format("policy {}{}, {}", policy_text(x.policy()), x.deterministic() ? ", deterministic" : "",
                          x.outlives_client() ? "stays until it is destroyed" : "goes with its client");
  if (!x.silent().empty())
    return fmt::format("{}: {}, {}; it does not say more: {}\n", name_text(x), ranks, kind, x.silent());
  if (x.ended())
    return ended_text(cluster, x, kind);
  auto result = fmt::format("{}: epoch {}, {}, {} in flight; {}\n", name_text(x), x.epoch(), ranks,
                            counted(x.operations_in_flight(), "operation"), kind);
  if (!x.async_error().empty())
    result += fmt::format("  {}\n", x.async_error());
  if (!x.error().empty())
    result += fmt::format("  its latest operations: {}\n", x.error());
  return result;
}

/// Whether two losses belong together: a node may have lost devices before.
bool is_together(const ClusterInfo::Gone& a, const ClusterInfo::Gone& b) {
  constexpr uint64_t difference_ns_max = 5'000'000'000;
  return std::max(a.time_ns(), b.time_ns()) - std::min(a.time_ns(), b.time_ns()) <= difference_ns_max;
}

/// Its state without these devices; empty: not known yet.
std::string state_without(const ClusterInfo& cluster, communicator_id id, const std::vector<device_id>& lost) {
  auto known = communicator(cluster, id);
  if (known == nullptr || known->ended())
    return "ended";
  if (!known->silent().empty())
    return "no answer";
  for (auto number : known->device_ids())
    if (std::ranges::find(lost, device_id{number}) != lost.end())
      return {};
  return fmt::format("epoch {} on {}", known->epoch(),
                     counted(static_cast<uint64_t>(known->device_ids_size()), "rank"));
}

} // namespace

std::string named_communicator(uint64_t id, const std::string& name) {
  return name.empty() ? fmt::format("communicator {}", id) : fmt::format("communicator {} ({})", id, name);
}

std::string policy_text(proto::FailurePolicy x) {
  return lower_case(proto::FailurePolicy_Name(x));
}

std::string time_text(uint64_t unix_ns, std::chrono::seconds utc_offset) {
  auto seconds = static_cast<std::time_t>(unix_ns / 1'000'000'000) + utc_offset.count();
  std::tm clock{};
  ::gmtime_r(&seconds, &clock);
  return fmt::format("{:%H:%M:%S}", clock);
}

std::chrono::seconds utc_offset_now() {
  auto now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  return std::chrono::seconds{local.tm_gmtoff};
}

std::vector<const ClusterInfo::Node*> nodes_by_name(const ClusterInfo& cluster) {
  std::vector<const ClusterInfo::Node*> result;
  for (auto& x : cluster.nodes())
    result.push_back(&x);
  std::ranges::sort(result, {}, [](auto* x) {
    return std::pair{x->name().size(), x->name()};
  }); // node-9 before node-10
  return result;
}

std::string apart_text(const ClusterInfo::Node::Apart& x) {
  return fmt::format("no direct way to {}: messages pass through the coordinator's process, and so do blocks where its "
                     "memory cannot be read: {}",
                     x.peer(), x.why());
}

std::string gone_text(const ClusterInfo::Gone& x, std::chrono::seconds utc_offset) {
  auto who = x.what() == ClusterInfo::Gone::NODE     ? "node " + x.name()
             : x.what() == ClusterInfo::Gone::DEVICE ? fmt::format("device {:#x}", x.id())
                                                     : fmt::format("communicator {}", x.id());
  if (x.what() == ClusterInfo::Gone::DEVICE && !x.name().empty())
    who += " of " + x.name();
  return fmt::format("{} {} {}: {}", time_text(x.time_ns(), utc_offset), who, x.left() ? "left" : "is lost", x.cause());
}

std::set<std::string> missing_nodes(const ClusterInfo& cluster, std::set<std::string> wanted) {
  for (auto& x : cluster.nodes()) {
    auto here = std::ranges::count_if(cluster.devices(), [&](auto& y) { return y.node_id() == x.node_id(); });
    if (here >= x.devices_announced())
      wanted.erase(x.name());
  }
  return wanted;
}

std::string encryption_text(const ClusterInfo& cluster) {
  return fmt::format("connections between processes are encrypted: {}", cluster.encryption());
}

std::set<communicator_id> communicators_of(const ClusterInfo& cluster) {
  std::set<communicator_id> result;
  for (auto& x : cluster.communicators())
    result.insert(communicator_id{x.comm_id()});
  return result;
}

std::string info_text(const ClusterInfo& cluster, const std::string& coordinator, std::chrono::seconds utc_offset) {
  auto free = std::ranges::count_if(cluster.devices(), [](auto& x) { return x.comm_ids().empty(); });
  auto result = fmt::format("coordinator at {}: {}, {} ({} free), {}\n", coordinator,
                            counted(static_cast<uint64_t>(cluster.nodes_size()), "node"),
                            counted(static_cast<uint64_t>(cluster.devices_size()), "device"), free,
                            counted(static_cast<uint64_t>(cluster.communicators_size()), "communicator"));
  if (cluster.insecure())
    result += fmt::format("{}\n", insecure_text);
  if (!cluster.encryption().empty())
    result += fmt::format("{}\n", encryption_text(cluster));
  if (!cluster.journal_trouble().empty())
    result += fmt::format("{}\n", cluster.journal_trouble());
  for (auto* x : nodes_by_name(cluster))
    result += node_text(cluster, *x);
  for (auto& x : cluster.communicators())
    result += communicator_text(cluster, x);
  if (!cluster.gone().empty())
    result += "gone\n";
  for (auto& x : cluster.gone())
    result += fmt::format("  {}\n", gone_text(x, utc_offset));
  return result;
}

std::optional<node_loss> loss_of(const ClusterInfo& cluster, const std::string& node) {
  const ClusterInfo::Gone* lost = nullptr;
  for (auto& x : cluster.gone())
    if (x.what() == ClusterInfo::Gone::NODE && x.name() == node)
      lost = &x; // the latest
  if (lost == nullptr || std::ranges::any_of(cluster.devices(), [&](auto& x) { return x.node_id() == lost->id(); }))
    return {};
  std::vector<device_id> devices;
  std::set<communicator_id> used_by;
  for (auto& x : cluster.gone())
    if (x.what() == ClusterInfo::Gone::DEVICE && x.name() == node && is_together(x, *lost)) {
      devices.push_back(device_id{x.id()});
      for (auto number : x.comm_ids())
        used_by.insert(communicator_id{number});
    }
  if (devices.empty())
    return node_loss{"no device", {}};
  std::ranges::sort(devices);
  std::vector<std::string> communicators;
  for (auto id : used_by) {
    auto state = state_without(cluster, id, devices);
    if (state.empty())
      return {};
    communicators.push_back(fmt::format("{} ({})", id, state));
  }
  auto text = fmt::format("device{} 0x{:x}", devices.size() == 1 ? "" : "s", fmt::join(devices, " 0x"));
  text += communicators.empty() ? fmt::format(", which {} free", devices.size() == 1 ? "was" : "were")
                                : fmt::format(" of communicator{} {}", communicators.size() == 1 ? "" : "s",
                                              fmt::join(communicators, ", "));
  return node_loss{std::move(text), {used_by.begin(), used_by.end()}};
}

std::string json_of(const google::protobuf::Message& x) {
  return json_of_message(x);
}

} // namespace ringmaster
