#include "tools/simulate/simulate_options.hpp"

#include "messages/errc.hpp"
#include "runtime/simulation/simulation_trace.hpp"

#include <fmt/format.h>

#include <charconv>

namespace ringmaster {

const char* const simulate_help = R"(usage: ringmaster simulate KIND [options]
       ringmaster simulate train --strategy S [options]     a step of training; see ringmaster simulate train --help
       ringmaster simulate memory [options]                 what training holds, by published formulas; see --help, too
       ringmaster simulate validate [options]               its estimates against measured steps; see --help, too

Runs a collective in virtual time: how long it would take on a network, which of its links is busiest, and which chain
of messages it waits for.

{}  --algorithm A     one of the kind's algorithms (all of them, one a line)
{}
The network. Each rank has one way out and one way in; a message occupies both for its bytes / bandwidth, and is there
a latency later.
  --latency T       of a message (5us)
  --bandwidth B     of a link, each way: 50GB/s, 400Gbit/s (50GB/s)
  --hosts H         the ranks fill H hosts, each with one network card, which has the above for what goes to other
                    hosts and is shared by all ranks of the host (1)
  --intra-latency T, --intra-bandwidth B
                    between ranks of one host, with --hosts (1us, 300GB/s)
  --slow-link A-B=FACTOR
                    the link between the ranks A and B is so many times slower; may be repeated
  --broken-link A-B it carries nothing: says who waits for whom; may be repeated
  --reduction-rate B, --copy-rate B
                    of one rank, so much of the incoming or copied block (they take no time)

  --deterministic   floats are added in rank order, as by a deterministic communicator
  --json            one JSON object a line
  --trace FILE      writes a trace to FILE, for ui.perfetto.dev or chrome://tracing; one algorithm, at most 64 ranks
  --help            this text

The exit status is 1 if the collective cannot end.
)";

namespace {

/// "A-B", or, where there is to be a factor, "A-B=FACTOR".
caf::error add_link(network& net, const std::string& text, bool slow) {
  odd_link link;
  link.broken = !slow;
  auto* end = text.data() + text.size();
  auto a = std::from_chars(text.data(), end, link.a);
  auto good = a.ec == std::errc{} && a.ptr != end && *a.ptr == '-';
  auto b = good ? std::from_chars(a.ptr + 1, end, link.b) : a;
  good = good && b.ec == std::errc{};
  if (good && slow) {
    good = b.ptr != end && *b.ptr == '=';
    auto factor = good ? std::from_chars(b.ptr + 1, end, link.slowdown) : b;
    good = good && factor.ec == std::errc{};
    b = factor;
  }
  if (!good || b.ptr != end)
    return make_error(errc::invalid_argument, fmt::format("\"{}\" is not two ranks{} such as {}", text,
                                                          slow ? " and a factor" : "", slow ? "2-3=10" : "2-3"));
  net.odd_links.push_back(link);
  return caf::none;
}

void add_network_options(option_table& table, network& net) {
  table.duration("--latency", net.link.latency);
  table.bandwidth("--bandwidth", net.link.bandwidth);
  table.number("--hosts", net.hosts, 1, UINT32_MAX);
  table.duration("--intra-latency", net.inside_host.latency);
  table.bandwidth("--intra-bandwidth", net.inside_host.bandwidth);
  table.bandwidth("--reduction-rate", net.reduction_rate);
  table.bandwidth("--copy-rate", net.copy_rate);
  table.value("--slow-link", [&net](auto& text) { return add_link(net, text, true); });
  table.value("--broken-link", [&net](auto& text) { return add_link(net, text, false); });
}

} // namespace

caf::expected<simulate_options> parse_simulate_options(std::span<const std::string> args) {
  constexpr uint32_t ranks_max = 1 << 16; // more than anybody's cluster; their ring has 17 billion steps, too many
  simulate_options opts;
  option_table table{"simulate"};
  add_collective_options(table, opts.collective, ranks_max);
  add_size_options(table, opts.collective);
  table.text("--schedule", opts.collective.schedule);
  add_network_options(table, opts.net);
  table.flag("--deterministic", opts.deterministic);
  table.flag("--json", opts.json);
  table.text("--trace", opts.trace);
  if (auto problem = table.read(args))
    return problem;
  opts.help = table.help();
  if (opts.help)
    return opts;
  if (!opts.trace.empty() && opts.collective.algorithm.empty() && opts.collective.schedule.empty())
    return make_error(errc::invalid_argument, "--trace shows one algorithm: say which, with --algorithm");
  return opts;
}

caf::error check_for_ranks(const simulate_options& opts, uint32_t ranks) {
  if (!opts.trace.empty() && ranks > traced_ranks_max)
    return make_error(errc::invalid_argument, fmt::format("--trace shows at most {} ranks", traced_ranks_max));
  return check_network(opts.net, ranks);
}

} // namespace ringmaster
