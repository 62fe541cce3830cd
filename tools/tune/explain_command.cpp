#include "tools/tune/explain_command.hpp"

#include "actors/configuration/configuration.hpp"
#include "actors/configuration/settings.hpp"
#include "messages/errc.hpp"
#include "runtime/schedule/bus_bandwidth.hpp"
#include "runtime/selection/process_costs.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/reduction/reduction.hpp"
#include "tools/options/collective_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

namespace ringmaster {

namespace {

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;

constexpr auto explain_help = R"(usage: ringmaster explain KIND [options]

Says which algorithm "auto" picks for a collective, why, and what each of the others is estimated to take: for ranks that
are all in one process, or for --transport network between processes, a rank each. The estimates are made of the
constants in section [costs] of the configuration, which `ringmaster tune` measures.

{}
  --transport T         process or network (process)
Constants of a network that is not the one in the configuration; each of them means --transport network:
  --latency T           of a message
  --bandwidth B         of a link, each way: 50GB/s, 400Gbit/s
  --reduction-rate B    of one rank (reductions take no time)
  --message-overhead T  for each message at the rank that has most of them (0)
  --round-overhead T    for each round (0)
  --section.key=V       any key of config/caf-application.conf, such as --config-file=FILE
  --help                this text
)";

struct explain_options {
  collective_options collective;
  bool network = false;
  cost_constants constants{}; ///< Of the network.
  process_constants process{};
  std::string origin; ///< Of the constants.
};

/// Whether an option says what the network is like.
bool is_about_network(const std::string& arg) {
  auto name = arg.substr(0, arg.find('='));
  return name == "--latency" || name == "--bandwidth" || name == "--reduction-rate" || name == "--message-overhead"
         || name == "--round-overhead";
}

caf::expected<explain_options> parse(std::span<const std::string> args) {
  constexpr uint32_t ranks_max = 1 << 16, process_ranks_max = 1024; // as many as a process can have devices
  configuration cfg;
  if (auto problem = cfg.read({args.begin(), args.end()}, "config/caf-application.conf"))
    return problem;
  explain_options opts;
  opts.constants = network_costs(cfg.values());
  opts.process = process_costs(cfg.values(), std::max(1u, std::thread::hardware_concurrency()));
  opts.origin = cfg.origin_of("costs");
  opts.network = std::any_of(args.begin(), args.end(), is_about_network);
  if (opts.network)
    opts.origin = "the command line, then " + opts.origin;
  int64_t latency_ps = std::llround(opts.constants.latency_s * 1e12), message_ps = 0, round_ps = 0;
  option_table table{"explain"};
  add_collective_options(table, opts.collective, ranks_max);
  add_size_options(table, opts.collective);
  table.value("--transport", [&](const std::string& x) -> caf::error {
    if (x != "network" && (x != "process" || opts.network))
      return make_error(errc::invalid_argument,
                        fmt::format("\"{}\" is not {}", x, opts.network ? "network, which other options are about"
                                                                        : "process or network"));
    opts.network = x == "network";
    return caf::none;
  });
  table.duration("--latency", latency_ps);
  table.duration("--message-overhead", message_ps);
  table.duration("--round-overhead", round_ps);
  table.bandwidth("--bandwidth", opts.constants.bandwidth);
  table.bandwidth("--reduction-rate", opts.constants.reduction_rate);
  if (auto problem = table.read(cfg.remainder))
    return problem;
  if (!opts.collective.algorithm.empty())
    return make_error(errc::invalid_argument, "--algorithm: leave it out; explain says which one \"auto\" picks");
  if (auto ranks = opts.collective.ranks.value_or(0); !opts.network && ranks > process_ranks_max)
    return make_error(errc::invalid_argument,
                      fmt::format("--ranks: a process has at most {} devices, not {}; --transport network takes more",
                                  process_ranks_max, ranks));
  opts.constants.latency_s = static_cast<double>(latency_ps) * 1e-12;
  opts.constants.message_overhead_s = static_cast<double>(message_ps) * 1e-12;
  opts.constants.round_overhead_s = static_cast<double>(round_ps) * 1e-12;
  return opts;
}

std::string seconds_text(double seconds) {
  return duration_text(static_cast<uint64_t>(std::llround(seconds * 1e9)));
}

/// "70 us in latencies (14) and 36.7 us on the wire (1.75 MiB)".
std::string why_on_network(const candidate& x, uint64_t element_bytes) {
  auto text = fmt::format("{} in latencies ({}) and {} on the wire ({})", seconds_text(x.time.latency_s),
                          x.cost.latencies, seconds_text(x.time.transfer_s),
                          bytes_text(x.cost.serial_elements * element_bytes));
  if (x.time.reduction_s > 0)
    text += fmt::format(", {} reducing", seconds_text(x.time.reduction_s));
  if (x.time.overhead_s > 0)
    text += fmt::format(", {} overhead", seconds_text(x.time.overhead_s));
  return text;
}

std::string why_in_process(const candidate& x) {
  return fmt::format("{} for the operation, {} in steps and messages, {} copying{}", seconds_text(x.time.overhead_s),
                     seconds_text(x.time.latency_s), seconds_text(x.time.transfer_s),
                     x.time.reduction_s > 0 ? fmt::format(", {} reducing", seconds_text(x.time.reduction_s)) : "");
}

/// What "auto" takes for ranks in one process, whatever the estimates say.
std::string joint_verdict(const candidate& picked, const candidate& fastest) {
  return fmt::format("picked: {}, as always where all ranks are in one process: it is a joint operation, and each "
                     "byte is read and written once; {} is estimated to take {:.2f} of its time\n",
                     picked.which->name, fastest.which->name, fastest.time.total_s() / picked.time.total_s());
}

std::string verdict(const std::vector<candidate>& all, bool network) {
  const auto& best = all.front();
  auto picked = std::find_if(all.begin(), all.end(), [&](auto& x) { return x.which == first_joint(x.which->kind); });
  if (!network && picked != all.end() && picked != all.begin())
    return joint_verdict(*picked, best);
  if (all.size() == 1)
    return fmt::format("picked: {}, the only one there is\n", best.which->name);
  const auto& next = all[1];
  if (next.time.total_s() == best.time.total_s())
    return fmt::format("picked: {}; {} takes as long, and is listed later\n", best.which->name, next.which->name);
  std::string reasons;
  auto less = [&](double mine, double other, const char* what) {
    if (mine < other)
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
  if (opts.network)
    return fmt::format("latency {}, bandwidth {}", seconds_text(opts.constants.latency_s), rate(opts.constants.bandwidth));
  auto& x = opts.process;
  return fmt::format("{} ({} to copy, {} to reduce each; {} for joint operations)", counted(x.cores, "core"),
                     rate(x.bandwidth), rate(x.reduction_rate), rate(x.joint.bandwidth));
}

caf::expected<std::string> explanation(const explain_options& opts, const plan_request& request) {
  constexpr uint64_t bytes_max = uint64_t{16} << 30;
  auto kind = *opts.collective.kind;
  auto element_bytes = size_of(opts.collective.datatype);
  auto all = opts.network ? candidates(kind, request, element_bytes, opts.constants)
                          : candidates_in_process(kind, request, element_bytes, opts.process);
  if (!all)
    return std::move(all.error());
  auto text = fmt::format("{}, {}{}, {}, {}\nconstants: {}\n", name_of(kind), counted(request.world_size, "rank"),
                          opts.network ? "" : " in one process", bytes_text(size_count(kind, request) * element_bytes),
                          constants_text(opts), opts.origin)
              + verdict(*all, opts.network) + "\n";
  for (const auto& x : *all)
    text += fmt::format("  {:<24} {:>9}  {}\n  {:<24} {:>9}  {}\n", x.which->name, seconds_text(x.time.total_s()),
                        opts.network ? why_on_network(x, element_bytes) : why_in_process(x), "", "", x.which->formula);
  if (kind == proto::BARRIER || !opts.network)
    return text;
  auto ranges = selection_by_size(kind, request, element_bytes, opts.constants, bytes_max / element_bytes);
  if (!ranges)
    return std::move(ranges.error());
  return text + "\n" + sizes_text(*ranges, element_bytes);
}

} // namespace

int explain_command(std::span<const std::string> args, std::FILE* out, std::FILE* err) {
  auto failed = [&](const caf::error& problem, int code) {
    fmt::print(err, "ringmaster explain: {}\n", render(problem));
    return code;
  };
  if (std::any_of(args.begin(), args.end(), [](auto& x) { return x == "--help" || x == "-h"; })) {
    fmt::print(out, explain_help, collective_options_help);
    return 0;
  }
  auto opts = parse(args);
  if (!opts)
    return failed(opts.error(), exit_usage);
  auto request = request_of(opts->collective);
  if (!request)
    return failed(request.error(), exit_usage);
  auto text = explanation(*opts, *request);
  if (!text)
    return failed(text.error(), exit_failed);
  fmt::print(out, "{}", *text);
  return 0;
}

} // namespace ringmaster
