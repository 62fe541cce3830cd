#include "tools/simulate/simulate_options.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/simulation/simulation_trace.hpp"
#include "tools/options/schedule_file.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace ringmaster {

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

void add_network_options(option_table& table, simulate_options& x) {
  auto& net = x.net;
  table.begin_group("The network. Each rank has one way out and one way in; a message occupies both for its bytes / "
                    "bandwidth, and is there a latency later.");
  table.duration("--latency", net.link.latency).says("T", "of a message");
  table.bandwidth("--bandwidth", net.link.bandwidth)
    .says("B", "of a link, each way, such as 50GB/s, 12.5GiB/s, 400Gbit/s or 400Gbps")
    .otherwise("50GB/s");
  add_hosts_option(table, x.collective.hosts,
                   "the ranks lie on several hosts, each with one network card, which has the above for what goes to "
                   "other hosts and is shared by all ranks of the host")
    .otherwise("one host");
  table.duration("--intra-latency", x.intra_latency)
    .says("T", "between ranks of one host, with --hosts")
    .otherwise("1us");
  table.bandwidth("--intra-bandwidth", x.intra_bandwidth).says("B", "the same").otherwise("300GB/s");
  table.value("--slow-link", [&net](auto& text) { return add_link(net, text, true); })
    .says("A-B=FACTOR", "the link between the ranks A and B is FACTOR times slower")
    .many();
  table.value("--broken-link", [&net](auto& text) { return add_link(net, text, false); })
    .says("A-B", "it carries nothing: says who waits for whom")
    .many();
  table.bandwidth("--reduction-rate", net.reduction_rate)
    .says("B", "of one rank, so much of the incoming block")
    .otherwise("it takes no time");
  table.bandwidth("--copy-rate", net.copy_rate).says("B", "the same of a copied block").otherwise("it takes no time");
}

} // namespace

void simulate_options::add_to(option_table& table) {
  constexpr uint32_t ranks_max = 1 << 16; // a ring of more has 17 billion steps, too many
  table.about(
    "Runs a collective in virtual time: reports its time on a network, the busiest link, and the critical path of "
    "messages.");
  add_collective_options(table, collective, {.max = ranks_max});
  table.positional().needed();
  offer_algorithms(table.option_named("--algorithm"), {"all"}).otherwise("all of them, in a table");
  add_size_options(table, collective);
  add_schedule_option(table, collective.schedule);
  add_network_options(table, *this);
  table.begin_group("Output:");
  table.flag("--deterministic", deterministic)
    .says("floats are added in rank order, as by a deterministic communicator");
  table.flag("--wide", wide)
    .says(
      "the table of all algorithms shows all columns; lines of at most 100 columns, or of the terminal's, leave out "
      "messages, rounds, sent and algorithm bw, in this order and as far as necessary");
  table.flag("--json", json).says("one JSON object a line");
  table.file("--trace", trace)
    .says("FILE",
          fmt::format("writes a trace to FILE, for ui.perfetto.dev or chrome://tracing; one algorithm, at most {} "
                      "ranks",
                      traced_ranks_max));
  table.common({"--algorithm", "--ranks", "--bytes", "--datatype", "--schedule", "--latency", "--bandwidth", "--hosts",
                "--json", "--trace"});
  table.closing("The exit status is 1 if the collective cannot end.");
  table.add_example("ringmaster simulate all_reduce --algorithm ring --ranks 4096 --bytes 1G --latency 5us",
                    "a large ring");
}

caf::error simulate_options::check() {
  auto on_one = collective.hosts.empty() || collective.hosts == std::vector<uint64_t>{1};
  if (on_one && (intra_latency || intra_bandwidth))
    return make_error(
      errc::invalid_argument,
      fmt::format("{}: all ranks are on one host, whose network is --latency's and --bandwidth's; it goes "
                  "with --hosts",
                  intra_latency ? "--intra-latency" : "--intra-bandwidth"));
  net.inside_host.latency = intra_latency.value_or(net.inside_host.latency);
  net.inside_host.bandwidth = intra_bandwidth.value_or(net.inside_host.bandwidth);
  if (collective.algorithm == "all")
    collective.algorithm.clear();
  if (auto kind = collective.kind)
    for (auto [option, given] :
         {std::pair{"--deterministic", deterministic}, {"--reduction-rate", std::isfinite(net.reduction_rate)}})
      RETURN_ERROR(given ? check_reduces(option, *kind) : caf::error{});
  if (!trace.empty() && collective.algorithm.empty() && collective.schedule.empty())
    return make_error(errc::invalid_argument, "--trace shows one algorithm: say which, with --algorithm");
  return caf::none;
}

caf::error check_for_ranks(simulate_options& opts, uint32_t ranks) {
  if (!opts.trace.empty() && ranks > traced_ranks_max)
    return make_error(errc::invalid_argument, fmt::format("--trace shows at most {} ranks", traced_ranks_max));
  TRY(hosts, hosts_of_ranks(opts.collective.hosts, ranks));
  opts.net.hosts = std::move(*hosts);
  return check_network(opts.net, ranks);
}

} // namespace ringmaster
