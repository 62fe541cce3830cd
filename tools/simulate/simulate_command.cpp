#include "tools/options/commands.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/rank_order/rank_order.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/selection/selection.hpp"
#include "runtime/selection/written_algorithm.hpp"
#include "runtime/simulation/network.hpp"
#include "runtime/simulation/simulation_trace.hpp"
#include "tools/console/output_file.hpp"
#include "tools/console/progress.hpp"
#include "tools/options/collective_options.hpp"
#include "tools/options/schedule_file.hpp"
#include "tools/simulate/simulate_report.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace ringmaster {

namespace {

/// The options of `ringmaster simulate`.
struct simulate_options {
  collective_options collective;
  network net;
  std::optional<int64_t> intra_latency;
  std::optional<double> intra_bandwidth;
  bool deterministic = false; ///< Floats are added in rank order.
  bool json = false;
  bool wide = false; ///< The table shows all columns.
  std::string trace; ///< A file; empty: none.

  void add_to(option_table& table);
  /// Checks that do not depend on the number of ranks. Errors: invalid_argument.
  caf::error check();
};

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
    return invalid(fmt::format("\"{}\" is not two ranks{} such as {}", text, slow ? " and a factor" : "",
                               slow ? "2-3=10" : "2-3"));
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
    return invalid("--trace shows one algorithm: say which, with --algorithm");
  return caf::none;
}

/// Places the ranks on hosts and checks what depends on their number. Errors: invalid_argument.
caf::error check_for_ranks(simulate_options& opts, uint32_t ranks) {
  if (!opts.trace.empty() && ranks > traced_ranks_max)
    return invalid(fmt::format("--trace shows at most {} ranks", traced_ranks_max));
  TRY(hosts, hosts_of_ranks(opts.collective.hosts, ranks));
  opts.net.hosts = std::move(*hosts);
  return check_network(opts.net, ranks);
}

/// The network for cutting pieces; links with other speeds are ignored.
cost_constants constants_of(const network& net) {
  constexpr double second_ps = 1e12;
  return {.latency_s = static_cast<double>(net.link.latency) / second_ps,
          .bandwidth = net.link.bandwidth,
          .reduction_rate = net.reduction_rate,
          .host_latency_s = static_cast<double>(net.inside_host.latency) / second_ps,
          .host_bandwidth = net.inside_host.bandwidth};
}

caf::expected<std::vector<simulated_subject>> algorithms_for(const simulate_options& opts) {
  const auto& asked = opts.collective;
  TRY(request, request_of(asked));
  TRY(chosen, algorithms_of(asked));
  std::vector<simulated_subject> result;
  for (auto* which : *chosen) {
    auto its = *request;
    TRY(chunk, chunk_for(*which, *request, size_of(asked.datatype), constants_of(opts.net)));
    its.chunk = *chunk;
    TRY(cost, cost_of(which->kind, which->name, its));
    auto in_rank_order = opts.deterministic && order_matters(which->kind, asked.datatype, gpu_sim::SUM);
    result.push_back({std::string{which->name}, which->kind, its, cost->rounds,
                      in_rank_order ? std::nullopt : std::optional{*cost},
                      [which, in_rank_order, of_rank = its](uint32_t rank) mutable {
                        of_rank.rank = rank;
                        return in_rank_order ? plan_in_rank_order(which->kind, which->name, of_rank)
                                             : plan(which->kind, which->name, of_rank);
                      },
                      in_rank_order});
  }
  return result;
}

caf::expected<std::vector<simulated_subject>> subject_in(const schedule_set& written, const collective_options& asked) {
  TRY(factor, asked.bytes ? factor_for("--bytes", *asked.bytes, asked, written) : uint64_t{1});
  TRY(all, scaled(written, *factor));
  simulated_subject result{algorithm_name_of(asked.schedule), all->kind, all->request, all->ranks[0].rounds};
  result.source = [ranks = std::move(all->ranks)](uint32_t rank) { return ranks[rank]; };
  return std::vector<simulated_subject>{std::move(result)};
}

/// `watch` is called with the part that is done. Planning is about as much work as simulating.
caf::expected<simulation_outcome> run(const simulated_subject& which, const simulate_options& opts,
                                      const std::function<void(double part)>& watch) {
  std::vector<simulated_activity> seen;
  simulation_observer observer;
  if (!opts.trace.empty())
    observer = [&](const simulated_activity& x) { seen.push_back(x); };
  auto element_bytes = size_of(opts.collective.datatype);
  uint64_t scratch = 0;
  auto source = [&](uint32_t rank) {
    auto planned = which.source(rank);
    watch(0.5 * rank / which.request.world_size);
    if (planned)
      scratch = std::max(scratch, planned->scratch_count);
    return planned;
  };
  auto result = simulate(which.request.world_size, source, opts.net, element_bytes, observer,
                         [&](uint64_t done, uint64_t steps) {
                           watch(0.5 + 0.5 * static_cast<double>(done) / static_cast<double>(steps));
                         });
  if (!result)
    return std::move(result.error());
  if (!opts.trace.empty())
    RETURN_ERROR(write_output_file(opts.trace, trace_of(seen, which.request.world_size), "the trace"));
  return simulation_outcome{which, element_bytes, std::move(*result), scratch};
}

/// The part of the whole work of each, estimated from its cost.
std::vector<double> works_of(const std::vector<simulated_subject>& chosen) {
  std::vector<double> result;
  double sum = 0;
  for (auto& x : chosen) {
    result.push_back(x.cost ? static_cast<double>(x.cost->messages) + 1 : 1);
    sum += result.back();
  }
  ensure(chosen.empty() || sum > 0, "each simulation is some work");
  for (auto& x : result)
    x /= sum;
  return result;
}

/// True if all have finished.
caf::expected<bool> run_all(const std::vector<simulated_subject>& chosen, const simulate_options& opts,
                            std::FILE* out) {
  auto as_table = chosen.size() > 1 && !opts.json;
  const auto page = page_format::of_console(opts.wide);
  const simulation_table table{page};
  if (as_table)
    fmt::print(out, "{}", table.head(chosen.front(), size_of(opts.collective.datatype)));
  std::fflush(out);
  auto all_ended = true;
  progress shown{"simulate"};
  double before = 0;
  const auto works = works_of(chosen);
  for (size_t i = 0; i < chosen.size(); ++i) {
    auto x = run(chosen[i], opts, [&](double part) { shown.at(before + part * works[i]); });
    before += works[i];
    if (!x)
      return std::move(x.error());
    all_ended = all_ended && x->result.stuck.empty();
    shown.print(out, opts.json ? json_of(*x) : as_table ? table.row(*x) : page.lines(report_of(*x, opts.net)));
  }
  if (!opts.trace.empty() && !opts.json)
    fmt::print(out, "Wrote {}: open it in ui.perfetto.dev or chrome://tracing.\n", opts.trace);
  return all_ended;
}

class simulate_call final : public command_call {
  void declare(option_table& table) override { opts_.add_to(table); }

  caf::error check() override {
    RETURN_ERROR(opts_.check());
    TRY(subjects, opts_.collective.schedule.empty() ? algorithms_for(opts_) : subject_in_file());
    subjects_ = std::move(*subjects);
    ensure(!subjects_.empty(), "a simulation has an algorithm");
    return check_for_ranks(opts_, subjects_.front().request.world_size);
  }

  caf::expected<std::vector<simulated_subject>> subject_in_file() const {
    const auto& asked = opts_.collective;
    TRY(written, schedules_for(asked));
    RETURN_ERROR(check_proof(asked.schedule, *written));
    return subject_in(*written, asked);
  }

  caf::expected<int> run(const console& to) override {
    TRY(all_ended, run_all(subjects_, opts_, to.out));
    return *all_ended ? exit_ok : exit_failed;
  }

  simulate_options opts_;
  std::vector<simulated_subject> subjects_;
};

} // namespace

tool_command simulate_command() {
  return tool_command::of<simulate_call>(
    "simulate",
    "a collective in virtual time, on a network of any size; simulate train: a step of "
    "training",
    {train_command(), memory_command(), validate_command()});
}

} // namespace ringmaster
