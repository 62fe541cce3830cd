#include "gateway/http/state/status_json.hpp"

#include "messages/collective_kind.hpp"
#include "runtime/health/verdict_text.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/schedule/collective.hpp"
#include "runtime/text/endpoint.hpp"
#include "runtime/text/utf8.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace ringmaster::gateway {

namespace {

using proto::ClusterInfo;
using proto::CommunicatorStatus;

/// The time that was `age_ns` ago; 0 for an age of 0, which stands for "not".
double since_ms(uint64_t now_ns, uint64_t age_ns) {
  return age_ns == 0 ? 0 : json_ms(now_ns - std::min(age_ns, now_ns));
}

json rank_json(const CommunicatorStatus::Rank& x, size_t rank, uint64_t now_ns) {
  auto& latest = x.latest();
  return {{"rank", rank},
          {"device", json_id(device_id{x.device_id()})},
          {"doing", x.doing()},
          {"sequence", latest.sequence()},
          {"round", latest.round()},
          {"rounds", latest.rounds()},
          {"busy", latest.busy()},
          {"waits_for", std::vector<uint32_t>(x.waits_for().begin(), x.waits_for().end())},
          {"queued", latest.queued()},
          {"late", x.late()},
          {"answers", x.answers()},
          {"heard_ms", x.has_latest() ? json_ms(now_ns - std::min(now_ns, x.latest_age_ns())) : 0},
          {"silent_since_ms", since_ms(now_ns, x.silent_ns())},
          {"lost", x.lost()},
          {"slow_factor", x.has_slow() ? x.slow().factor() : 0}};
}

json operation_json(const CommunicatorStatus::Operation& x, uint64_t now_ns) {
  auto& what = x.collective();
  return {{"sequence", x.sequence()},
          {"kind", name_of(what.kind())},
          {"algorithm", what.algorithm()},
          {"datatype", name_of(what.datatype())},
          {"op", reduces(what.kind()) ? lower_case(gpu_sim::ReduceOp_Name(what.op())) : ""},
          {"count", what.count()},
          {"bytes", x.bytes()},
          {"phase", lower_case(CommunicatorStatus::Operation::Phase_Name(x.phase()))},
          {"started_ms", json_ms(now_ns - std::min(now_ns, x.age_ns()))},
          {"attempts", x.attempts()},
          {"shared_memory", x.joint()},
          {"ranks_done", x.ranks_done()},
          {"world_size", x.world_size()}};
}

json route_json(const std::string& name, uint64_t bytes, uint64_t bytes_per_s) {
  return {{"route", name}, {"bytes", bytes}, {"bytes_per_s", bytes_per_s}};
}

json verdict_json(const proto::Verdict& x) {
  auto culprits = json::array();
  for (auto& each : x.culprits())
    culprits.push_back({{"rank", each.rank()},
                        {"device", json_id(device_id{each.device_id()})},
                        {"node", each.node()},
                        {"host", each.host()},
                        {"pid", each.pid()}});
  return {{"number", x.number()},
          {"time_ms", json_ms(x.time_ns())},
          {"epoch", x.epoch()},
          {"kind", name_of(x.kind())},
          {"culprits", std::move(culprits)},
          {"sequence", x.sequence()},
          {"operation", x.operation()},
          {"text", ringmaster::text_of(x)}};
}

/// The latest ones: `ringmaster status` shows as many.
json verdicts_json(const CommunicatorStatus& x) {
  constexpr int shown_max = 3;
  auto result = json::array();
  for (int i = std::max(0, x.verdicts_size() - shown_max); i < x.verdicts_size(); ++i)
    result.push_back(verdict_json(x.verdicts(i)));
  return result;
}

/// Ranks that others wait for and that wait for no rank.
std::vector<uint32_t> causes_of(const CommunicatorStatus& x) {
  std::set<uint32_t> result;
  for (auto& rank : x.ranks())
    for (auto other : rank.waits_for())
      if (other < static_cast<uint32_t>(x.ranks_size()) && x.ranks(static_cast<int>(other)).waits_for().empty())
        result.insert(other);
  return {result.begin(), result.end()};
}

json node_json(const ClusterInfo::Node& x, const std::vector<std::string>& devices, uint64_t now_ns) {
  json result{{"id", x.node_id()},
              {"name", x.name()},
              {"host", x.hostname()},
              {"address", x.port() == 0 ? "" : text_of(endpoint{x.host(), static_cast<uint16_t>(x.port())})},
              {"pid", x.pid()},
              {"devices", devices},
              {"devices_announced", x.devices_announced()},
              {"joined_ms", json_ms(x.joined_ns())},
              {"draining", x.draining()},
              {"silent_since_ms", since_ms(now_ns, x.silent_ns())}};
  auto& apart = result["apart"] = json::array();
  for (auto& peer : x.apart())
    apart.push_back({{"peer", peer.peer()}, {"why", peer.why()}});
  return result;
}

json device_json(const ClusterInfo::Device& x, const ClusterInfo::Node* node) {
  auto& about = x.metadata();
  return {{"id", json_id(device_id{about.deviceid().value()})},
          {"node", node != nullptr ? node->name() : ""},
          {"host", node != nullptr ? node->hostname() : ""},
          {"memory_bytes", about.maxmemaddr().value() - about.minmemaddr().value()},
          {"communicators", std::vector<uint64_t>(x.comm_ids().begin(), x.comm_ids().end())},
          {"free", x.comm_ids().empty()}};
}

json lost_json(const ClusterInfo::Gone& x) {
  return {{"what", lower_case(ClusterInfo::Gone::What_Name(x.what()))},
          {"id", x.what() == ClusterInfo::Gone::DEVICE ? json_id(device_id{x.id()}) : std::to_string(x.id())},
          {"name", x.name()},
          {"cause", x.cause()},
          {"time_ms", json_ms(x.time_ns())},
          {"orderly", x.left()},
          {"communicators", std::vector<uint64_t>(x.comm_ids().begin(), x.comm_ids().end())}};
}

json queues_json(const queue_lengths& x) {
  return {{"stream_commands", x.stream_commands},
          {"operations_in_flight", x.operations_in_flight},
          {"open_calls", x.open_calls},
          {"waiting_calls", x.waiting_calls},
          {"waiting_for_group_end", x.waiting_for_group_end}};
}

/// Nodes and devices, by their numbers.
void write_places(json& to, const ClusterInfo& cluster, uint64_t now_ns) {
  std::map<uint64_t, const ClusterInfo::Node*> nodes;
  std::map<uint64_t, std::vector<std::string>> devices_of_nodes;
  std::map<uint64_t, const ClusterInfo::Device*> devices;
  for (auto& node : cluster.nodes())
    nodes.emplace(node.node_id(), &node);
  for (auto& device : cluster.devices())
    devices.emplace(device.metadata().deviceid().value(), &device);
  auto& device_list = to["devices"] = json::array();
  for (auto& [id, device] : devices) {
    const auto node = nodes.find(device->node_id());
    device_list.push_back(device_json(*device, node == nodes.end() ? nullptr : node->second));
    devices_of_nodes[device->node_id()].push_back(json_id(device_id{id}));
  }
  auto& node_list = to["nodes"] = json::array();
  for (auto& [id, node] : nodes)
    node_list.push_back(node_json(*node, devices_of_nodes[id], now_ns));
}

/// The age of a fact is measured at another moment than the time that it is subtracted from: a time that differs by no
/// more than this has not changed.
constexpr double jitter_ms = 50;

void settle(json& now, const json& before, const char* field) {
  auto& time = now.at(field);
  const auto known = before.at(field).get<double>();
  if (time.get<double>() != 0 && known != 0 && std::abs(time.get<double>() - known) < jitter_ms)
    time = known;
}

/// Settles `fields` of the entries that have the same `key` in both lists, which are sorted alike.
void settle_all(json& now, const json& before, const char* key, std::initializer_list<const char*> fields) {
  size_t at = 0;
  for (auto& x : now) {
    auto other = at;
    while (other < before.size() && before[other].at(key) != x.at(key))
      ++other;
    if (other == before.size())
      continue;
    at = other + 1;
    for (const auto* field : fields)
      settle(x, before[other], field);
  }
}

void settle_communicators(json& now, const json& before) {
  settle_all(now, before, "id", {"last_progress_ms"});
  for (auto& x : now)
    for (auto& y : before)
      if (x.at("id") == y.at("id")) {
        settle_all(x.at("ranks"), y.at("ranks"), "rank", {"heard_ms", "silent_since_ms"});
        settle_all(x.at("operations"), y.at("operations"), "sequence", {"started_ms"});
        settle_all(x.at("waiting_calls"), y.at("waiting_calls"), "waits_for", {"started_ms"});
      }
}

} // namespace

queue_lengths queue_lengths::of(const proto::ClusterStatus& x) {
  queue_lengths result;
  for (auto& each : x.communicators()) {
    for (auto& rank : each.ranks())
      result.stream_commands += rank.latest().queued();
    result.operations_in_flight += each.operations_in_flight();
    result.open_calls += each.open_calls();
    result.waiting_calls += static_cast<uint64_t>(each.waiting_calls_size());
    result.waiting_for_group_end += each.waiting_for_group_end();
  }
  return result;
}

json status_writer::write(const proto::ClusterStatus& x, const cluster_facts& facts) {
  count(x);
  json result{
    {"time_ms", json_ms(x.time_ns())},
    {"coordinator", {{"reachable", facts.error.empty()}, {"address", facts.coordinator}, {"error", facts.error}}},
    {"route", x.cluster().route()},
    {"journal",
     {{"first", facts.first_index},
      {"last", facts.last_index},
      {"folded", facts.folded},
      {"unsynced", facts.unsynced},
      {"trouble", x.cluster().journal_trouble()}}},
    {"rates", rates_json(x)},
    {"queues", queues_json(queue_lengths::of(x))},
    {"nodes", json::array()}};
  write_places(result, x.cluster(), x.time_ns());
  std::map<uint64_t, const CommunicatorStatus*> communicators;
  for (auto& each : x.communicators())
    communicators.emplace(each.comm_id(), &each);
  auto& list = result["communicators"] = json::array();
  for (auto& [id, each] : communicators)
    list.push_back(communicator_json(*each, x.time_ns()));
  std::erase_if(latest_graphs_, [&](auto& entry) { return communicators.count(entry.first) == 0; });
  auto& lost = result["lost"] = json::array();
  for (auto& each : x.cluster().gone())
    lost.push_back(lost_json(each));
  if (!latest_.is_null()) {
    settle_communicators(result["communicators"], latest_["communicators"]);
    settle_all(result["nodes"], latest_["nodes"], "id", {"silent_since_ms"});
  }
  latest_ = result;
  return result;
}

json status_writer::communicator_json(const CommunicatorStatus& x, uint64_t time_ns) {
  json result{{"id", x.comm_id()},
              {"name", x.name()},
              {"policy", lower_case(proto::FailurePolicy_Name(x.policy()))},
              {"deterministic", x.deterministic()},
              {"outlives_client", x.outlives_client()},
              {"epoch", x.epoch()},
              {"state", lower_case(CommunicatorStatus::State_Name(x.state()))},
              {"status", lower_case(gpu_sim::Status_Name(x.status()))},
              {"error", x.error()},
              {"async_error", x.async_error()},
              {"silent", x.silent()}};
  auto& ranks = result["ranks"] = json::array();
  for (auto& rank : x.ranks())
    ranks.push_back(rank_json(rank, ranks.size(), time_ns));
  auto& operations = result["operations"] = json::array();
  for (auto& op : x.operations())
    operations.push_back(operation_json(op, time_ns));
  result["operations_in_flight"] = x.operations_in_flight();
  result["waiting_for_group_end"] = x.waiting_for_group_end();
  result["open_calls"] = x.open_calls();
  auto& calls = result["waiting_calls"] = json::array();
  for (auto& call : x.waiting_calls())
    calls.push_back({{"waits_for", call.waits_for()}, {"started_ms", since_ms(time_ns, call.age_ns())}});
  result["last_progress_ms"] = since_ms(time_ns, x.still_ns());
  result["causes"] = causes_of(x);
  result["verdicts"] = verdicts_json(x);
  result["topology"] = topology_of(x);
  auto& routes = result["routes"] = json::array();
  for (auto& route : x.routes())
    routes.push_back(route_json(route.name(), route.bytes(), route.bytes_per_s()));
  result["succeeded"] = x.operations_ended();
  result["failed"] = x.operations_failed();
  result["in_mailbox"] = x.operations_met();
  return result;
}

const json& status_writer::topology_of(const CommunicatorStatus& x) {
  auto& latest = latest_graphs_[x.comm_id()];
  for (auto& op : x.operations())
    if (op.phase() == CommunicatorStatus::Operation::RUNNING) {
      latest = {op.collective().kind(), op.collective().algorithm(), op.world_size()};
      break;
    }
  return topologies_.of(latest.kind, latest.algorithm, latest.ranks);
}

void status_writer::count(const proto::ClusterStatus& x) {
  std::set<uint64_t> present;
  for (auto& each : x.communicators()) {
    present.insert(each.comm_id());
    if (!each.silent().empty())
      continue; // it has reported no counts
    for (auto& route : each.routes()) {
      auto& before = received_[{each.comm_id(), route.name()}];
      route_bytes_[route.name()] += route.bytes() - std::min(before, route.bytes());
      before = route.bytes();
    }
    const auto done = each.operations_ended() + each.operations_failed() + each.operations_met();
    auto [before, is_new] = done_.try_emplace(each.comm_id(), done);
    operations_ += done - std::min(before->second, done);
    before->second = done;
  }
  std::erase_if(received_, [&](auto& entry) { return present.count(entry.first.first) == 0; });
  std::erase_if(done_, [&](auto& entry) { return present.count(entry.first) == 0; });
}

json status_writer::rates_json(const proto::ClusterStatus& x) {
  constexpr uint64_t window_ns = 3'000'000'000;
  moments_.push_back({x.time_ns(), operations_});
  while (moments_.size() > 2 && moments_[1].time_ns + window_ns < x.time_ns())
    moments_.pop_front();
  auto& oldest = moments_.front();
  const auto seconds = x.time_ns() > oldest.time_ns ? static_cast<double>(x.time_ns() - oldest.time_ns) / 1e9 : 0;
  const auto rate = seconds > 0 ? static_cast<double>(operations_ - oldest.operations) / seconds : 0;
  std::map<std::string, uint64_t> now;
  for (auto& each : x.communicators())
    for (auto& route : each.routes())
      now[route.name()] += route.bytes_per_s();
  uint64_t bytes_per_s = 0;
  auto routes = json::array();
  for (auto& [name, bytes] : route_bytes_) {
    bytes_per_s += now[name];
    routes.push_back(route_json(name, bytes, now[name]));
  }
  return {{"operations_per_s", std::round(rate * 10) / 10}, {"bytes_per_s", bytes_per_s}, {"routes", routes}};
}

} // namespace ringmaster::gateway
