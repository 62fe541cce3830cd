#include "tools/simulate_command.hpp"

#include "messages/errc.hpp"
#include "runtime/bus_bandwidth.hpp"
#include "runtime/quantity_text.hpp"
#include "runtime/reduction.hpp"
#include "runtime/simulation/simulation_trace.hpp"
#include "tools/output_file.hpp"
#include "tools/simulate_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace ringmaster {

namespace {

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;

std::string time_text(picoseconds time) {
  return time < 1000 ? fmt::format("{} ps", time) : duration_text(static_cast<uint64_t>((time + 500) / 1000));
}

/// An algorithm's simulation, with what is said of it.
struct outcome {
  const algorithm& which;
  const plan_request& request;
  uint64_t element_bytes = 1;
  algorithm_cost cost;
  simulation result;

  uint64_t size() const { return size_count(which.kind, request) * element_bytes; }
  /// Bytes a second.
  double bandwidth() const {
    return result.time == 0 ? 0 : static_cast<double>(size()) * 1e12 / static_cast<double>(result.time);
  }
  double bus_bandwidth() const { return bandwidth() * bus_bandwidth_factor(which.kind, request.world_size); }
};

std::string gigabytes(double bandwidth) {
  return fmt::format("{:.2f} GB/s", bandwidth / 1e9);
}

bool is_uniform(const network& net) {
  return net.hosts == 1 && net.odd_links.empty() && std::isinf(net.reduction_rate) && std::isinf(net.copy_rate);
}

std::string formula(const outcome& x, const network& net) {
  return fmt::format("{} x {} + {} / {}", x.cost.latencies, time_text(net.link.latency),
                     bytes_text(x.cost.serial_elements * x.element_bytes), gigabytes(net.link.bandwidth));
}

/// The link on which the path spends most: what to look at first.
std::string slowest_of(const std::vector<path_part>& path, picoseconds time) {
  std::map<std::pair<uint32_t, uint32_t>, std::pair<picoseconds, uint64_t>> by_link; // time and parts
  for (const auto& part : path) {
    auto& [sum, parts] = by_link[{part.source, part.destination}];
    sum += part.transfer + part.latency;
    ++parts;
  }
  auto most = std::max_element(by_link.begin(), by_link.end(),
                               [](auto& a, auto& b) { return a.second.first < b.second.first; });
  if (most == by_link.end() || time == 0)
    return "";
  auto [from, to] = most->first;
  auto what = from == to ? counted(most->second.second, "piece") + fmt::format(" of work on rank {}", from)
                         : counted(most->second.second, "message") + fmt::format(" {} -> {}", from, to);
  return fmt::format("; most of it in {}, {:.0f} %", what,
                     100 * static_cast<double>(most->second.first) / static_cast<double>(time));
}

std::string path_text(const simulation& x) {
  auto sum = summary_of(x.critical_path);
  auto text = counted(sum.messages, "message") + ": " + time_text(sum.transfer) + " on the wire, "
              + time_text(sum.latency) + " latency";
  if (sum.work != 0)
    text += ", " + time_text(sum.work) + " arithmetic";
  return text + slowest_of(x.critical_path, x.time);
}

std::string report_of(const outcome& x, const network& net) {
  const auto& r = x.result;
  auto text = fmt::format("{}, {}, {}, {}: {}\n", name_of(x.which.kind), x.which.name,
                          counted(x.request.world_size, "rank"),
                          bytes_text(x.size()), counted(x.cost.rounds, "round"));
  auto line = [&](const char* name, const std::string& value) { text += fmt::format("  {:<20} {}\n", name, value); };
  if (!r.stuck.empty()) {
    line("it does not end", r.stuck);
    line("until then", fmt::format("{} in {} of its messages", time_text(r.time), r.messages));
    return text;
  }
  line("time", time_text(r.time));
  if (is_uniform(net))
    line("by its formula", formula(x, net));
  line("algorithm bandwidth", gigabytes(x.bandwidth()));
  line("bus bandwidth", gigabytes(x.bus_bandwidth()));
  line("sent", fmt::format("{} in {}, {}", bytes_text(r.bytes), counted(r.messages, "message"),
                           counted(r.steps, "step")));
  if (!r.busiest_port.empty())
    line("busiest", fmt::format("{}, {:.1f} % of the time", r.busiest_port, 100 * r.busiest_share));
  line("critical path", path_text(r));
  return text;
}

std::string row_of(const outcome& x) {
  const auto& r = x.result;
  if (!r.stuck.empty())
    return fmt::format("{:<24} does not end: {}\n", x.which.name, r.stuck);
  return fmt::format("{:<24} {:>10} {:>13} {:>13} {:>7} {:>9} {:>10} {:>7.1f} %\n", x.which.name, time_text(r.time),
                     gigabytes(x.bandwidth()), gigabytes(x.bus_bandwidth()), x.cost.rounds, r.messages,
                     bytes_text(r.bytes), 100 * r.busiest_share);
}

std::string json_of(const outcome& x) {
  const auto& r = x.result;
  auto path = summary_of(r.critical_path);
  return fmt::format(
    R"({{"kind":"{}","algorithm":"{}","ranks":{},"bytes":{},"time_ps":{},"algorithm_bandwidth":{:.6g},)"
    R"("bus_bandwidth":{:.6g},"rounds":{},"steps":{},"messages":{},"bytes_sent":{},"busiest":"{}",)"
    R"("busiest_share":{:.6g},)"
    R"("critical_path":{{"messages":{},"reductions":{},"copies":{},"transfer_ps":{},"latency_ps":{},"work_ps":{}}},)"
    R"("stuck":"{}"}})"
    "\n",
    name_of(x.which.kind), x.which.name, x.request.world_size, x.size(), r.time, x.bandwidth(), x.bus_bandwidth(),
    x.cost.rounds, r.steps, r.messages, r.bytes, r.busiest_port, r.busiest_share, path.messages, path.reductions,
    path.copies, path.transfer, path.latency, path.work, r.stuck);
}

caf::expected<outcome> run(const algorithm& which, const plan_request& request, const simulate_options& opts) {
  std::vector<simulated_activity> seen;
  simulation_observer observer;
  if (!opts.trace.empty())
    observer = [&](const simulated_activity& x) { seen.push_back(x); };
  auto source = [&](uint32_t rank) {
    auto of_rank = request;
    of_rank.rank = rank;
    return plan(which.kind, which.name, of_rank);
  };
  auto element_bytes = size_of(opts.collective.datatype);
  auto cost = cost_of(which.kind, which.name, request);
  if (!cost)
    return std::move(cost.error());
  auto result = simulate(request.world_size, source, opts.net, element_bytes, observer);
  if (!result)
    return std::move(result.error());
  if (!opts.trace.empty())
    if (auto problem = write_output_file(opts.trace, trace_of(seen, request.world_size), "the trace"))
      return problem;
  return outcome{which, request, element_bytes, *cost, std::move(*result)};
}

/// True if all ended.
caf::expected<bool> run_all(const std::vector<const algorithm*>& chosen, const plan_request& request,
                            const simulate_options& opts, std::FILE* out) {
  auto as_table = chosen.size() > 1 && !opts.json;
  if (as_table)
    fmt::print(out, "{}, {}, {}\n{:<24} {:>10} {:>13} {:>13} {:>7} {:>9} {:>10} {:>9}\n", name_of(chosen[0]->kind),
               counted(request.world_size, "rank"),
               bytes_text(size_count(chosen[0]->kind, request) * size_of(opts.collective.datatype)), "algorithm",
               "time", "algorithm bw", "bus bw", "rounds", "messages", "sent", "busiest");
  auto all_ended = true;
  for (auto* which : chosen) {
    auto x = run(*which, request, opts);
    if (!x)
      return std::move(x.error());
    all_ended = all_ended && x->result.stuck.empty();
    fmt::print(out, "{}", opts.json ? json_of(*x) : as_table ? row_of(*x) : report_of(*x, opts.net));
  }
  if (!opts.trace.empty() && !opts.json)
    fmt::print(out, "Wrote {}: open it in ui.perfetto.dev or chrome://tracing.\n", opts.trace);
  return all_ended;
}

} // namespace

int simulate_command(std::span<const std::string> args, std::FILE* out, std::FILE* err) {
  auto failed = [&](const caf::error& problem, int code) {
    fmt::print(err, "ringmaster simulate: {}\n", render(problem));
    return code;
  };
  auto opts = parse_simulate_options(args);
  if (!opts)
    return failed(opts.error(), exit_usage);
  if (opts->help) {
    fmt::print(out, fmt::runtime(simulate_help), collective_options_help);
    return 0;
  }
  auto request = request_of(opts->collective);
  if (!request)
    return failed(request.error(), exit_usage);
  auto chosen = algorithms_of(opts->collective);
  if (!chosen)
    return failed(chosen.error(), exit_usage);
  auto all_ended = run_all(*chosen, *request, *opts, out);
  if (!all_ended)
    return failed(all_ended.error(), exit_failed);
  return *all_ended ? 0 : exit_failed;
}

} // namespace ringmaster
