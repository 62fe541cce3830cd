#include "tools/options/commands.hpp"

#include "actors/configuration/settings.hpp"
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/schedule/bus_bandwidth.hpp"
#include "runtime/selection/process_costs.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/console/page_format.hpp"
#include "tools/options/collective_options.hpp"
#include "tools/options/configured_call.hpp"
#include "tools/tune/tune_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <thread>

namespace ringmaster {

namespace {

struct explain_options {
  collective_options collective;
  std::optional<std::string> transport;
  std::optional<int64_t> latency_ps, message_ps, round_ps;
  std::optional<double> bandwidth, reduction_rate;
  std::optional<int64_t> intra_latency_ps;
  std::optional<double> intra_bandwidth;
  bool network = false;
  cost_constants constants{}; ///< Of the network.
  process_constants process{};
  std::string origin; ///< Of the constants.
  bool wide = false;  ///< Lines are not wrapped.
};

constexpr uint32_t ranks_max = 1 << 16, process_ranks_max = 1024; // the maximum of a process

void add_network_options(option_table& table, explain_options& x) {
  table.word("--transport", x.transport, {"process", "network"}).says("T", "{words}").otherwise("process");
  table.begin_group("Constants of another network than the configured one; each implies --transport network:");
  table.duration("--latency", x.latency_ps).says("T", "of a message").otherwise("as configured");
  table.bandwidth("--bandwidth", x.bandwidth)
    .says("B", "of a link, each way, such as 50GB/s, 400Gbit/s or 400Gbps")
    .otherwise("as configured");
  add_hosts_option(table, x.collective.hosts, "the ranks lie on several hosts, up to 256 ranks")
    .otherwise("each rank on one of its own");
  table.duration("--intra-latency", x.intra_latency_ps)
    .says("T", "of a message between ranks of one host, with --hosts")
    .otherwise("as configured");
  table.bandwidth("--intra-bandwidth", x.intra_bandwidth).says("B", "the same").otherwise("as configured");
  table.bandwidth("--reduction-rate", x.reduction_rate).says("B", "of one rank").otherwise("reductions take no time");
  table.duration("--message-overhead", x.message_ps)
    .says("T", "for each message at the rank, or the host, that has most of them")
    .otherwise("as configured");
  table.duration("--round-overhead", x.round_ps).says("T", "for each round").otherwise("0");
}

double seconds_of(int64_t ps) {
  return static_cast<double>(ps) * 1e-12;
}

/// Options for the network override the configuration.
caf::error take_network(explain_options& x) {
  auto inside = x.intra_latency_ps || x.intra_bandwidth;
  auto has_constants = x.latency_ps || x.message_ps || x.round_ps || x.bandwidth || x.reduction_rate || inside;
  auto on_hosts = !x.collective.hosts.empty();
  if ((has_constants || on_hosts) && x.transport == "process")
    return invalid("--transport process has no constants of a network");
  if (inside && !on_hosts)
    return invalid(fmt::format("{}: it needs --hosts", x.intra_latency_ps ? "--intra-latency" : "--intra-bandwidth"));
  x.network = has_constants || on_hosts || x.transport == "network";
  if (has_constants)
    x.origin = "the command line, then " + x.origin;
  if (x.latency_ps)
    x.constants.latency_s = seconds_of(*x.latency_ps);
  x.constants.bandwidth = x.bandwidth.value_or(x.constants.bandwidth);
  if (x.intra_latency_ps)
    x.constants.host_latency_s = seconds_of(*x.intra_latency_ps);
  x.constants.host_bandwidth = x.intra_bandwidth.value_or(x.constants.host_bandwidth);
  x.constants.reduction_rate = x.reduction_rate.value_or(x.constants.reduction_rate);
  if (x.message_ps)
    x.constants.message_overhead_s = seconds_of(*x.message_ps);
  x.constants.round_overhead_s = seconds_of(x.round_ps.value_or(0));
  return caf::none;
}

/// "70 us in latencies (14) and 36.7 us on the wire (1.75 MiB)"; on several hosts each "across" and "within" hosts.
std::string why_on_network(const candidate& x, uint64_t element_bytes) {
  auto both = [](const std::string& across, const std::string& within) {
    return fmt::format("{} across, {} within", across, within);
  };
  auto latencies = fmt::format("{}", x.cost.latencies), bytes = bytes_text(x.cost.serial_elements * element_bytes);
  if (x.on_hosts) {
    const auto &across = x.on_hosts->across, &within = x.on_hosts->within;
    latencies = both(fmt::format("{}", across.latencies), fmt::format("{}", within.latencies));
    bytes = both(bytes_text(static_cast<uint64_t>(across.bytes)), bytes_text(static_cast<uint64_t>(within.bytes)));
  }
  auto text = fmt::format("{} in latencies ({}) and {} on the wire ({})", seconds_text(x.time.latency_s), latencies,
                          seconds_text(x.time.transfer_s), bytes);
  if (x.time.reduction_s > 0)
    text += fmt::format(", {} reducing", seconds_text(x.time.reduction_s));
  if (x.time.overhead_s > 0)
    text += fmt::format(", {} overhead", seconds_text(x.time.overhead_s));
  if (x.chunk != 0)
    text += fmt::format("; pieces of {}", bytes_text(x.chunk * element_bytes));
  return text;
}

std::string why_in_process(const candidate& x) {
  return fmt::format("{} for the operation, {} in steps and messages, {} copying{}", seconds_text(x.time.overhead_s),
                     seconds_text(x.time.latency_s), seconds_text(x.time.transfer_s),
                     x.time.reduction_s > 0 ? fmt::format(", {} reducing", seconds_text(x.time.reduction_s)) : "");
}

/// The choice of "auto" for ranks in one process, which does not depend on estimates.
std::string shared_memory_verdict(const candidate& picked, const candidate& fastest) {
  return fmt::format("picked: {}, as always in one process: it is a shared-memory operation, which reads and writes "
                     "each byte once; {} is estimated to take {:.2f} of its time\n",
                     picked.which->name, fastest.which->name, fastest.time.total_s() / picked.time.total_s());
}

std::string why_picked(const std::vector<candidate>& all, bool network) {
  ensure(!all.empty(), "a collective has an algorithm");
  const auto& best = all.front();
  auto picked = std::find_if(all.begin(), all.end(),
                             [&](auto& x) { return x.which == first_shared_memory(x.which->kind); });
  if (!network && picked != all.end() && picked != all.begin())
    return shared_memory_verdict(*picked, best);
  if (all.size() == 1)
    return fmt::format("picked: {}, the only algorithm\n", best.which->name);
  const auto& next = all[1];
  if (next.time.total_s() == best.time.total_s())
    return fmt::format("picked: {}; {} takes as long, and is listed later\n", best.which->name, next.which->name);
  std::string reasons;
  auto less = [&](double mine, double other, const char* what) {
    if (other - mine > 0.01 * (next.time.total_s() - best.time.total_s())) // smaller differences are no reason
      reasons += fmt::format("{}{} less {}", reasons.empty() ? "" : " and ", seconds_text(other - mine), what);
  };
  less(best.time.latency_s, next.time.latency_s, network ? "in latencies" : "in steps and messages");
  less(best.time.transfer_s, next.time.transfer_s, network ? "on the wire" : "copying");
  less(best.time.reduction_s, next.time.reduction_s, "reducing");
  less(best.time.overhead_s, next.time.overhead_s, "overhead");
  return fmt::format("picked: {}; the next, {}, takes {:.2f} times as long: {} has {}\n", best.which->name,
                     next.which->name, next.time.total_s() / best.time.total_s(), best.which->name, reasons);
}

std::string sizes_text(const std::vector<selection_range>& ranges, uint64_t element_bytes) {
  std::string text = "by size, tried at powers of two:";
  for (const auto& range : ranges)
    text += fmt::format("{} {} from {}", &range == &ranges.front() ? "" : ",", range.which->name,
                        bytes_text(range.elements_min * element_bytes));
  return text + "\n";
}

std::string constants_text(const explain_options& opts) {
  auto rate = [](double bytes) { return fmt::format("{:.4g} GB/s", bytes / 1e9); };
  if (opts.network) {
    auto text = fmt::format("latency {}, bandwidth {}", seconds_text(opts.constants.latency_s),
                            rate(opts.constants.bandwidth));
    if (opts.collective.hosts.empty())
      return text;
    return text
           + fmt::format("; within a host {}, {}", seconds_text(opts.constants.host_latency_s),
                         rate(opts.constants.host_bandwidth));
  }
  auto& x = opts.process;
  return fmt::format("{} ({} to copy, {} to reduce each; {} for shared-memory operations)", counted(x.cores, "core"),
                     rate(x.bandwidth), rate(x.reduction_rate), rate(x.joint.bandwidth));
}

caf::expected<std::string> explanation(const explain_options& opts, const plan_request& request) {
  constexpr uint64_t bytes_max = uint64_t{16} << 30;
  auto kind = *opts.collective.kind;
  auto element_bytes = size_of(opts.collective.datatype);
  TRY(all, opts.network ? candidates(kind, request, element_bytes, opts.constants)
                        : candidates_in_process(kind, request, element_bytes, opts.process));
  auto text = fmt::format("{}, {}{}, {}, {}\nconstants: {}\n", name_of(kind), counted(request.world_size, "rank"),
                          opts.network ? "" : " in one process", bytes_text(size_count(kind, request) * element_bytes),
                          constants_text(opts), opts.origin)
              + why_picked(*all, opts.network) + "\n";
  for (const auto& x : *all)
    text += fmt::format("  {:<24} {:>9}  {}\n  {:<24} {:>9}  {}\n", x.which->name, seconds_text(x.time.total_s()),
                        opts.network ? why_on_network(x, element_bytes) : why_in_process(x), "", "", x.which->formula);
  if (kind == proto::BARRIER || !opts.network)
    return text;
  TRY(ranges, selection_by_size(kind, request, element_bytes, opts.constants, bytes_max / element_bytes));
  return text + "\n" + sizes_text(*ranges, element_bytes);
}

class explain_call final : public configured_call {
  void declare_options(option_table& table) override {
    table.about("Shows which algorithm \"auto\" picks for a collective and why, with estimates for all algorithms: for "
                "ranks in one process, or with --transport network for processes with a rank each. The estimates use "
                "the constants in section [costs] of the configuration, which `ringmaster tune` measures.");
    add_kind_and_ranks(table, opts_.collective, {.max = ranks_max});
    table.positional().needed();
    add_size_options(table, opts_.collective);
    table.flag("--wide", opts_.wide).says("does not wrap lines that are wider than the terminal, or than 100 columns");
    add_network_options(table, opts_);
    table.begin_group("The configuration.");
    table.common({"--ranks", "--bytes", "--datatype", "--transport", "--hosts", "--latency", "--bandwidth",
                  "--intra-latency", "--intra-bandwidth", "--wide"});
    table.add_example("ringmaster explain all_reduce --ranks 64 --bytes 256M --latency 5us --bandwidth 400Gbps",
                      "on another network");
  }

  caf::error check() override {
    opts_.constants = network_costs(cfg_.values());
    opts_.process = process_costs(cfg_.values(), std::max(1u, std::thread::hardware_concurrency()));
    opts_.origin = cfg_.origin_of("costs");
    RETURN_ERROR(take_network(opts_));
    if (opts_.reduction_rate && opts_.collective.kind)
      RETURN_ERROR(check_reduces("--reduction-rate", *opts_.collective.kind));
    if (auto ranks = opts_.collective.ranks.value_or(0); !opts_.network && ranks > process_ranks_max)
      return invalid(fmt::format("--ranks: a process has at most {} devices, not {}; --transport network takes more",
                                 process_ranks_max, ranks));
    TRY(request, request_of(opts_.collective));
    request_ = *request;
    if (std::set<uint32_t> hosts(request_.hosts.begin(), request_.hosts.end());
        hosts.size() > 1 && hosts.size() < request_.world_size && !has_two_levels(request_))
      return invalid(
        fmt::format("--hosts: {} ranks on such hosts are too many to plan; use fewer, or `ringmaster simulate`",
                    request_.world_size));
    return caf::none;
  }

  caf::expected<int> run(const console& to) override {
    TRY(text, explanation(opts_, request_));
    fmt::print(to.out, "{}", page_format::of_console(opts_.wide).lines(*text));
    return exit_ok;
  }

  explain_options opts_;
  plan_request request_;
};

} // namespace

tool_command explain_command() {
  return tool_command::of<explain_call>("explain", "shows which algorithm is picked for a collective, and why");
}

} // namespace ringmaster
