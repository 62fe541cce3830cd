#include "tools/cluster/status_text.hpp"

#include "messages/wire_ids.hpp"
#include "runtime/health/slow_devices.hpp"
#include "runtime/health/verdict_text.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/schedule/collective.hpp"
#include "runtime/text/endpoint.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/cluster/info_text.hpp"
#include "tools/console/streamed_table.hpp"

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
  if (x.cluster().insecure())
    result.push_back({tone::warning, std::string{insecure_text}});
  if (!x.cluster().encryption().empty())
    result.push_back({tone::plain, encryption_text(x.cluster())});
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

namespace {

using proto::CommunicatorStatus;
using operation_status = CommunicatorStatus::Operation;

constexpr uint64_t second_ns = 1'000'000'000;

const proto::ClusterInfo::Device* find_device(const proto::ClusterInfo& cluster, device_id id) {
  auto found = std::ranges::find(cluster.devices(), id, [](auto& x) { return id_of(x.metadata()); });
  return found == cluster.devices().end() ? nullptr : &*found;
}

const proto::ClusterInfo::Node* find_node(const proto::ClusterInfo& cluster, node_id id) {
  auto found = std::ranges::find(cluster.nodes(), id, [](auto& x) { return node_id{x.node_id()}; });
  return found == cluster.nodes().end() ? nullptr : &*found;
}

/// "node-2 on hostb, pid 812"; a lost device has no node.
std::string place_of(const proto::ClusterInfo& cluster, device_id device) {
  auto known = find_device(cluster, device);
  auto node = known == nullptr ? nullptr : find_node(cluster, node_id{known->node_id()});
  return node == nullptr ? "not here" : place_text(*node);
}

std::string state_text(const CommunicatorStatus& x) {
  switch (x.state()) {
    case CommunicatorStatus::STOPPING: return "its ranks stop for a new epoch";
    case CommunicatorStatus::REPLACING: return "waits for a spare";
    case CommunicatorStatus::ENDING: return "ends";
    case CommunicatorStatus::ENDED: return "has ended, and is kept until it is destroyed";
    default: break;
  }
  if (x.operations_in_flight() > 0)
    return "at work";
  auto quiet = x.met_quiet_ns() > 0 && (x.quiet_ns() == 0 || x.met_quiet_ns() < x.quiet_ns()) ? x.met_quiet_ns()
                                                                                              : x.quiet_ns();
  return quiet == 0 ? "has done nothing yet"
                    : fmt::format("nothing in flight, the latest ended {} ago", age_text(quiet));
}

std::string head_text(const CommunicatorStatus& x) {
  auto result = fmt::format("{}: {}, policy {}{}, epoch {}, {}; ", named_communicator(x.comm_id(), x.name()),
                            counted(static_cast<uint64_t>(x.ranks_size()), "rank"), policy_text(x.policy()),
                            x.deterministic() ? ", deterministic" : "", x.epoch(), state_text(x));
  if (x.operations_in_flight() > 0)
    result += fmt::format("{} in flight, ", counted(x.operations_in_flight(), "operation"));
  result += fmt::format("{} ended well, {} failed", x.operations_ended(), x.operations_failed());
  if (x.operations_met() > 0)
    result += fmt::format(", {} more met in memory", x.operations_met());
  return result;
}

std::string what_text(const operation_status& op) {
  auto& what = op.collective();
  return fmt::format("#{} {} ({}), {}", op.sequence(), name_of(what.kind()), what.algorithm(), bytes_text(op.bytes()));
}

/// The first operation in flight.
std::string operation_text(const operation_status& op) {
  auto result = fmt::format("  {}, called {} ago", what_text(op), age_text(op.age_ns()));
  if (op.attempts() > 1)
    result += fmt::format(", attempt {}", op.attempts());
  if (op.phase() == operation_status::QUEUED)
    return result + ": waits for the new epoch";
  if (op.phase() == operation_status::CANCELLED)
    return result + ": fails when all ranks have stopped";
  if (op.phase() == operation_status::DECIDED)
    return result + ": decided, results are put in place";
  return result
         + fmt::format(": {} of {} ranks have {} it", op.ranks_done(), op.world_size(),
                       op.joint() ? "come to" : "finished");
}

void add_queued(const CommunicatorStatus& x, std::vector<status_line>& out) {
  constexpr int named_max = 3;
  std::vector<std::string> named;
  for (int i = 1; i < x.operations_size() && i <= named_max; ++i)
    named.push_back(what_text(x.operations(i)));
  auto more = x.operations_in_flight() > 1 + named.size() ? x.operations_in_flight() - 1 - named.size() : 0;
  if (more > 0)
    named.push_back(fmt::format("{} more", more));
  if (!named.empty())
    out.push_back({tone::plain, fmt::format("  then: {}", fmt::join(named, "; "))});
  if (x.waiting_for_group_end() > 0)
    out.push_back({tone::plain,
                   fmt::format("  {} for GroupEnd", x.waiting_for_group_end() == 1
                                                      ? "1 call waits"
                                                      : fmt::format("{} calls wait", x.waiting_for_group_end()))});
  for (auto& call : x.waiting_calls())
    out.push_back({call.age_ns() > second_ns ? tone::warning : tone::plain,
                   fmt::format("  calls wait for {}: {}", age_text(call.age_ns()), call.waits_for())});
}

std::string trouble_of(const CommunicatorStatus::Rank& x) {
  std::vector<std::string> result;
  if (x.silent_ns() > second_ns / 2)
    result.push_back(fmt::format("its process has been silent for {}", age_text(x.silent_ns())));
  if (x.late() > 0)
    result.push_back(fmt::format("{} of its last {} answers were late", x.late(), x.answers()));
  if (x.has_slow())
    result.push_back(text_of(x.slow()));
  return fmt::format("{}", fmt::join(result, ", "));
}

/// "waiting for rank 2's block at round 4 of 14; 2 of its last 5 answers were late"
std::string doing_text(const CommunicatorStatus::Rank& x) {
  const auto trouble = trouble_of(x);
  return trouble.empty() ? x.doing() : x.doing() + "; " + trouble;
}

std::string received_text(const CommunicatorStatus::Rank& x) {
  uint64_t bytes = 0;
  for (auto& route : x.latest().received())
    bytes += route.bytes();
  return bytes == 0 ? "-" : bytes_text(bytes);
}

/// All ranks of a small communicator; of a large one those that others wait for and those with problems.
std::set<int> ranks_listed(const CommunicatorStatus& x, const std::vector<uint32_t>& culprits) {
  constexpr int all_max = 32;
  std::set<int> result;
  for (int rank = 0; rank < x.ranks_size(); ++rank)
    if (auto& about = x.ranks(rank); x.ranks_size() <= all_max || about.lost() || !trouble_of(about).empty()
                                     || std::ranges::count(culprits, static_cast<uint32_t>(rank)) > 0)
      result.insert(rank);
  return result;
}

std::vector<std::string> row_of(const CommunicatorStatus& x, int rank, const proto::ClusterInfo& cluster) {
  auto& about = x.ranks(rank);
  auto& latest = about.latest();
  bool of_it = x.operations_size() > 0 && latest.sequence() == x.operations(0).sequence();
  return {std::to_string(rank),
          fmt::format("0x{:x}", about.device_id()),
          place_of(cluster, device_id{about.device_id()}),
          of_it && latest.rounds() > 0 ? fmt::format("{}/{}", latest.round(), latest.rounds()) : "-",
          of_it ? received_text(about) : "-",
          about.has_latest() ? std::to_string(latest.queued()) : "-",
          about.has_latest() ? age_text(about.latest_age_ns()) : "never",
          about.answers() == 0 ? "-" : fmt::format("{}/{}", about.late(), about.answers()),
          doing_text(about)};
}

/// The columns of the ranks' table, each as wide as its cells.
std::vector<streamed_table::column> columns_for(const std::vector<std::vector<std::string>>& rows) {
  constexpr size_t doing_min = 40; ///< A longer text is wrapped.
  constexpr size_t gap = 1;        ///< Two blanks between columns.
  std::vector<streamed_table::column> result;
  for (auto [head, left_out] : {std::pair{"rank", 0u},
                                {"device", 3},
                                {"where", 5},
                                {"round", 0},
                                {"received", 4},
                                {"queued", 1},
                                {"heard", 0},
                                {"late", 2},
                                {"doing", 0}}) {
    size_t width = std::string_view{head}.size();
    for (auto& row : rows)
      width = std::max(width, row[result.size()].size());
    result.push_back({{head}, width + gap, text_side::left, left_out});
  }
  result.back().width = std::min(result.back().width, doing_min);
  return result;
}

void add_ranks(const CommunicatorStatus& x, const proto::ClusterInfo& cluster, const std::vector<uint32_t>& culprits,
               page_format page, std::vector<status_line>& out) {
  constexpr std::string_view indent = "  ";
  const auto listed = ranks_listed(x, culprits);
  ensure(listed.size() <= static_cast<size_t>(x.ranks_size()), "listed ranks are in the communicator");
  std::vector<std::vector<std::string>> rows;
  for (auto rank : listed)
    rows.push_back(row_of(x, rank, cluster));
  page.columns -= indent.size();
  const streamed_table table{columns_for(rows), page};
  auto add = [&](tone how, std::string line) {
    line.pop_back();
    out.push_back({how, std::string{indent} + line});
  };
  add(tone::plain, table.head());
  size_t next = 0;
  for (auto rank : listed) {
    auto& about = x.ranks(rank);
    add(about.lost() || !trouble_of(about).empty() ? tone::bad : tone::plain, table.row(rows[next++]));
  }
  if (auto note = table.note(); !note.empty())
    out.push_back({tone::plain, std::string{indent} + note});
  if (auto others = static_cast<size_t>(x.ranks_size()) - listed.size(); others > 0)
    out.push_back({tone::plain, fmt::format("  {} without trouble", counted(others, "other rank"))});
}

void add_culprits(const CommunicatorStatus& x, const proto::ClusterInfo& cluster, const std::vector<uint32_t>& culprits,
                  std::vector<status_line>& out) {
  constexpr size_t listed_max = 4;
  for (size_t i = 0; i < std::min(culprits.size(), listed_max); ++i) {
    ensure(static_cast<int>(culprits[i]) < x.ranks_size(), "a rank that others wait for is in the communicator");
    auto& rank = x.ranks(static_cast<int>(culprits[i]));
    out.push_back({x.still_ns() > second_ns ? tone::bad : tone::plain,
                   fmt::format("  others wait for rank {} (device 0x{:x}, {}): {}", culprits[i], rank.device_id(),
                               place_of(cluster, device_id{rank.device_id()}), doing_text(rank))});
  }
  if (culprits.size() > listed_max)
    out.push_back({tone::plain, fmt::format("  and for {}", counted(culprits.size() - listed_max, "other rank"))});
}

void add_routes(const CommunicatorStatus& x, std::vector<status_line>& out) {
  std::vector<std::string> routes;
  for (auto& route : x.routes())
    routes.push_back(fmt::format("{} {}, {}/s", route.name(), bytes_text(route.bytes()),
                                 bytes_text(route.bytes_per_s())));
  if (!routes.empty())
    out.push_back({tone::plain, fmt::format("  bytes by route: {}", fmt::join(routes, "; "))});
}

} // namespace

std::string age_text(uint64_t ns) {
  auto s = ns / second_ns;
  if (s < 60)
    return fmt::format("{:.1f} s", static_cast<double>(ns) / second_ns);
  if (s < 3600)
    return fmt::format("{} min {} s", s / 60, s % 60);
  if (s < 86400)
    return fmt::format("{} h {} min", s / 3600, s / 60 % 60);
  return fmt::format("{} d {} h", s / 86400, s / 3600 % 24);
}

std::vector<uint32_t> waited_for(const CommunicatorStatus& x) {
  std::set<uint32_t> result;
  for (auto& rank : x.ranks())
    for (auto other : rank.waits_for())
      if (static_cast<int>(other) < x.ranks_size() && x.ranks(static_cast<int>(other)).waits_for().empty())
        result.insert(other);
  return {result.begin(), result.end()};
}

/// What has happened to it: the latest verdicts; without one, its own words, which also say why it has ended.
void add_verdicts(const CommunicatorStatus& x, std::vector<status_line>& out) {
  constexpr int shown_max = 3;
  const bool has_ended = x.state() == CommunicatorStatus::ENDING || x.state() == CommunicatorStatus::ENDED;
  if (!x.async_error().empty() && (x.verdicts().empty() || has_ended))
    out.push_back({tone::warning, "  " + x.async_error()});
  for (int i = std::max(0, x.verdicts_size() - shown_max); i < x.verdicts_size(); ++i)
    out.push_back({tone::warning, "  " + text_of(x.verdicts(i))});
}

void add_communicator(const CommunicatorStatus& x, const proto::ClusterInfo& cluster, const page_format& page,
                      std::vector<status_line>& out) {
  if (!x.silent().empty()) {
    out.push_back({tone::bad,
                   fmt::format("{}: {}, policy {}; it does not say more: {}", named_communicator(x.comm_id(), x.name()),
                               counted(static_cast<uint64_t>(x.ranks_size()), "rank"), policy_text(x.policy()),
                               x.silent())});
    return;
  }
  auto ended = x.state() == CommunicatorStatus::ENDING || x.state() == CommunicatorStatus::ENDED;
  out.push_back({ended ? tone::bad : tone::plain, head_text(x)});
  add_verdicts(x, out);
  if (!x.error().empty() && x.error() != x.async_error())
    out.push_back({tone::bad, "  its latest operations: " + x.error()});
  if (x.still_ns() > second_ns)
    out.push_back({tone::bad, fmt::format("  nothing has moved for {}", age_text(x.still_ns()))});
  if (x.operations_size() > 0)
    out.push_back({tone::plain, operation_text(x.operations(0))});
  add_queued(x, out);
  if (!ended && (x.operations_in_flight() > 0 || x.state() != CommunicatorStatus::ACTIVE)) {
    auto culprits = waited_for(x);
    add_culprits(x, cluster, culprits, out);
    add_ranks(x, cluster, culprits, page, out);
  }
  add_routes(x, out);
}

} // namespace ringmaster
