#include "tools/explain_command.hpp"

#include "messages/errc.hpp"
#include "runtime/bus_bandwidth.hpp"
#include "runtime/quantity_text.hpp"
#include "runtime/reduction.hpp"
#include "runtime/selection.hpp"
#include "tools/collective_options.hpp"

#include <fmt/format.h>

#include <cmath>

namespace ringmaster {

namespace {

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;

constexpr auto explain_help = R"(usage: ringmaster explain KIND [options]

Says which algorithm would be picked for a collective, why, and what each of the others is estimated to take.

{}
What the estimate is made of:
  --latency T           of a message (5us)
  --bandwidth B         of a link, each way: 50GB/s, 400Gbit/s (50GB/s)
  --reduction-rate B    of one rank (reductions take no time)
  --message-overhead T  for each message at the rank that has most of them (0)
  --round-overhead T    for each round (0)
  --help                this text
)";

struct explain_options {
  collective_options collective;
  int64_t latency_ps = 5'000'000, message_overhead_ps = 0, round_overhead_ps = 0;
  cost_constants constants{};
  bool help = false;
};

caf::expected<explain_options> parse(std::span<const std::string> args) {
  constexpr uint32_t ranks_max = 1 << 16;
  explain_options opts;
  option_table table{"explain"};
  add_collective_options(table, opts.collective, ranks_max);
  add_size_options(table, opts.collective);
  table.duration("--latency", opts.latency_ps);
  table.duration("--message-overhead", opts.message_overhead_ps);
  table.duration("--round-overhead", opts.round_overhead_ps);
  table.bandwidth("--bandwidth", opts.constants.bandwidth);
  table.bandwidth("--reduction-rate", opts.constants.reduction_rate);
  if (auto problem = table.read(args))
    return problem;
  if (!opts.collective.algorithm.empty())
    return make_error(errc::invalid_argument, "--algorithm picks one itself, so there is nothing to explain");
  opts.constants.latency_s = static_cast<double>(opts.latency_ps) * 1e-12;
  opts.constants.message_overhead_s = static_cast<double>(opts.message_overhead_ps) * 1e-12;
  opts.constants.round_overhead_s = static_cast<double>(opts.round_overhead_ps) * 1e-12;
  opts.help = table.help();
  return opts;
}

std::string seconds_text(double seconds) {
  return duration_text(static_cast<uint64_t>(std::llround(seconds * 1e9)));
}

/// "14 latencies, 1.75 MiB one after the other".
std::string why(const candidate& x, uint64_t element_bytes) {
  auto text = fmt::format("{} in latencies ({}) and {} on the wire ({})", seconds_text(x.time.latency_s),
                          x.cost.latencies, seconds_text(x.time.transfer_s),
                          bytes_text(x.cost.serial_elements * element_bytes));
  if (x.time.reduction_s > 0)
    text += fmt::format(", {} reducing", seconds_text(x.time.reduction_s));
  if (x.time.overhead_s > 0)
    text += fmt::format(", {} overhead", seconds_text(x.time.overhead_s));
  return text;
}

std::string verdict(const std::vector<candidate>& all) {
  const auto& best = all.front();
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
  less(best.time.latency_s, next.time.latency_s, "in latencies");
  less(best.time.transfer_s, next.time.transfer_s, "on the wire");
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

caf::expected<std::string> explanation(const explain_options& opts, const plan_request& request) {
  constexpr uint64_t bytes_max = uint64_t{16} << 30;
  auto kind = *opts.collective.kind;
  auto element_bytes = size_of(opts.collective.datatype);
  auto all = candidates(kind, request, element_bytes, opts.constants);
  if (!all)
    return std::move(all.error());
  auto text = fmt::format("{}, {}, {}, latency {}, bandwidth {:.4g} GB/s\n", name_of(kind),
                          counted(request.world_size, "rank"),
                          bytes_text(size_count(kind, request) * element_bytes), seconds_text(opts.constants.latency_s),
                          opts.constants.bandwidth / 1e9)
              + verdict(*all) + "\n";
  for (const auto& x : *all)
    text += fmt::format("  {:<24} {:>9}  {}\n  {:<24} {:>9}  {}\n", x.which->name, seconds_text(x.time.total_s()),
                        why(x, element_bytes), "", "", x.which->formula);
  if (kind == proto::BARRIER)
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
  auto opts = parse(args);
  if (!opts)
    return failed(opts.error(), exit_usage);
  if (opts->help) {
    fmt::print(out, explain_help, collective_options_help);
    return 0;
  }
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
