#include "tools/simulate/simulate_report.hpp"

#include "runtime/algorithms/parts/pieces.hpp"
#include "runtime/schedule/bus_bandwidth.hpp"
#include "runtime/text/json_field.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <compare>
#include <map>

namespace ringmaster {

namespace {

std::string time_text(picoseconds time) {
  return time < 1000 ? fmt::format("{} ps", time) : duration_text(static_cast<uint64_t>((time + 500) / 1000));
}

std::string gigabytes(double bandwidth) {
  return fmt::format("{:.2f} GB/s", bandwidth / 1e9);
}

bool is_uniform(const network& net) {
  return net.hosts.empty() && net.odd_links.empty() && std::isinf(net.reduction_rate) && std::isinf(net.copy_rate);
}

std::string formula(const simulation_outcome& x, const network& net) {
  return fmt::format("{} x {} + {} / {}", x.which.cost->latencies, time_text(net.link.latency),
                     bytes_text(x.which.cost->serial_elements * x.element_bytes), gigabytes(net.link.bandwidth));
}

/// What a part of the critical path occupies: a link or a rank's arithmetic, or all of a class that are alike.
struct occupied_place {
  enum class kind : uint8_t { link, links_between, links_within, rank, ranks };

  kind what = kind::link;
  uint32_t source = 0, destination = 0; ///< 0 for a class.

  auto operator<=>(const occupied_place&) const = default;
};

occupied_place occupied_by(const path_part& part, const simulation& x, const network& net) {
  using enum occupied_place::kind;
  auto one_of = [&](const simulation::resource_class& all, occupied_place::kind several, occupied_place::kind single) {
    return all.alike && all.used > 1 ? occupied_place{several} : occupied_place{single, part.source, part.destination};
  };
  if (part.source == part.destination)
    return one_of(x.arithmetic, ranks, rank);
  if (!net.hosts.empty() && net.hosts[part.source] != net.hosts[part.destination])
    return one_of(x.links_between, links_between, link);
  return one_of(x.links_within, links_within, link);
}

std::string spent_text(const occupied_place& where, uint64_t parts, const simulation& x) {
  const auto messages = counted(parts, "message"), work = counted(parts, "piece") + " of work";
  switch (where.what) {
    case occupied_place::kind::link: return fmt::format("{} {} -> {}", messages, where.source, where.destination);
    case occupied_place::kind::links_between:
      return fmt::format("{} between hosts ({} links alike)", messages, x.links_between.used);
    case occupied_place::kind::links_within:
      return fmt::format("{} within hosts ({} links alike)", messages, x.links_within.used);
    case occupied_place::kind::rank: return fmt::format("{} on rank {}", work, where.source);
    case occupied_place::kind::ranks: return fmt::format("{} ({} ranks alike)", work, x.arithmetic.used);
  }
  return {};
}

/// Where the critical path spends most of its time: what to look at first. Names one link or rank only if it differs
/// from the others of its class. Empty if it is the links, and all of them are alike.
std::string slowest_of(const simulation& x, const network& net) {
  std::map<occupied_place, std::pair<picoseconds, uint64_t>> by_place; // time and parts
  for (const auto& part : x.critical_path) {
    auto& [sum, parts] = by_place[occupied_by(part, x, net)];
    sum += part.transfer + part.latency;
    ++parts;
  }
  auto most = std::max_element(by_place.begin(), by_place.end(),
                               [](auto& a, auto& b) { return a.second.first < b.second.first; });
  if (most == by_place.end() || x.time == 0)
    return "";
  const auto& [where, spent] = *most;
  const bool is_work = where.what == occupied_place::kind::rank || where.what == occupied_place::kind::ranks;
  if (!is_work && x.links.alike)
    return "";
  return fmt::format("; most of it in {}, {:.0f} %", spent_text(where, spent.second, x),
                     100 * static_cast<double>(spent.first) / static_cast<double>(x.time));
}

/// Of an algorithm that cuts its data; 0: it does not.
uint64_t piece_bytes(const simulation_outcome& x) {
  const auto& request = x.which.request;
  auto which = find_algorithm(x.which.kind, x.which.name);
  if (!which || !(*which)->is.in_chunks)
    return 0;
  return std::min(request.chunk == 0 ? default_chunk : request.chunk, request.count) * x.element_bytes;
}

/// Names one port only where it stands out.
std::string busiest_text(const simulation& x) {
  if (x.ports_alike == 1)
    return x.busiest_port;
  return x.ports_alike == x.ports_used ? fmt::format("all {} ports alike", x.ports_used)
                                       : fmt::format("{} of {} ports alike", x.ports_alike, x.ports_used);
}

std::string path_text(const simulation& x, const network& net) {
  auto sum = summary_of(x.critical_path);
  auto text = counted(sum.messages, "message") + ": " + time_text(sum.transfer) + " on the wire, "
              + time_text(sum.latency) + " latency";
  if (sum.work != 0)
    text += ", " + time_text(sum.work) + " arithmetic";
  return text + slowest_of(x, net);
}

} // namespace

uint64_t simulation_outcome::size() const {
  return size_count(which.kind, which.request) * element_bytes;
}

double simulation_outcome::bandwidth() const {
  return result.time == 0 ? 0 : static_cast<double>(size()) * 1e12 / static_cast<double>(result.time);
}

double simulation_outcome::bus_bandwidth() const {
  return bandwidth() * bus_bandwidth_factor(which.kind, which.request.world_size);
}

std::string report_of(const simulation_outcome& x, const network& net) {
  const auto& r = x.result;
  auto text = fmt::format("{}, {}, {}, {}: {}\n", name_of(x.which.kind), x.which.name,
                          counted(x.which.request.world_size, "rank"), bytes_text(x.size()),
                          counted(x.which.rounds, "round"));
  auto line = [&](const char* name, const std::string& value) { text += fmt::format("  {:<20} {}\n", name, value); };
  if (!r.stuck.empty()) {
    line("it does not end", r.stuck);
    line("until then", fmt::format("{} in {} of its messages", time_text(r.time), r.messages));
    return text;
  }
  line("time", time_text(r.time));
  if (auto bytes = piece_bytes(x); bytes != 0)
    line("pieces of", bytes_text(bytes));
  if (x.which.cost && is_uniform(net))
    line("by its formula", formula(x, net));
  line("algorithm bandwidth", gigabytes(x.bandwidth()));
  line("bus bandwidth", gigabytes(x.bus_bandwidth()));
  line("sent",
       fmt::format("{} in {}, {}", bytes_text(r.bytes), counted(r.messages, "message"), counted(r.steps, "step")));
  if (x.which.in_rank_order)
    line("scratch", bytes_text(x.scratch * x.element_bytes) + " at most, to add in rank order");
  if (!r.busiest_port.empty())
    line("busiest", fmt::format("{}, {:.1f} % of the time", busiest_text(r), 100 * r.busiest_share));
  line("critical path", path_text(r, net));
  return text;
}

std::string row_of(const simulation_outcome& x) {
  const auto& r = x.result;
  if (!r.stuck.empty())
    return fmt::format("{:<24} does not end: {}\n", x.which.name, r.stuck);
  return fmt::format("{:<24} {:>10} {:>13} {:>13} {:>7} {:>9} {:>10} {:>7.1f} %\n", x.which.name, time_text(r.time),
                     gigabytes(x.bandwidth()), gigabytes(x.bus_bandwidth()), x.which.rounds, r.messages,
                     bytes_text(r.bytes), 100 * r.busiest_share);
}

std::string header_of(const simulated_subject& first, uint64_t element_bytes) {
  return fmt::format("{}, {}, {}\n{:<24} {:>10} {:>13} {:>13} {:>7} {:>9} {:>10} {:>9}\n", name_of(first.kind),
                     counted(first.request.world_size, "rank"),
                     bytes_text(size_count(first.kind, first.request) * element_bytes), "algorithm", "time",
                     "algorithm bw", "bus bw", "rounds", "messages", "sent", "busiest");
}

std::string json_of(const simulation_outcome& x) {
  const auto& r = x.result;
  auto path = summary_of(r.critical_path);
  json_value json{{"kind", name_of(x.which.kind)},
                  {"algorithm", x.which.name},
                  {"ranks", x.which.request.world_size},
                  {"bytes", x.size()},
                  {"time_ps", r.time},
                  {"algorithm_bandwidth", rounded(x.bandwidth(), 6)},
                  {"bus_bandwidth", rounded(x.bus_bandwidth(), 6)}};
  if (auto bytes = piece_bytes(x); bytes != 0)
    json["piece_bytes"] = bytes;
  json.update({{"rounds", x.which.rounds},
               {"steps", r.steps},
               {"messages", r.messages},
               {"bytes_sent", r.bytes},
               {"busiest", r.busiest_port},
               {"busiest_share", rounded(r.busiest_share, 6)},
               {"critical_path",
                {{"messages", path.messages},
                 {"reductions", path.reductions},
                 {"copies", path.copies},
                 {"transfer_ps", path.transfer},
                 {"latency_ps", path.latency},
                 {"work_ps", path.work}}},
               {"stuck", r.stuck}});
  return json_text(json) + "\n";
}

} // namespace ringmaster
