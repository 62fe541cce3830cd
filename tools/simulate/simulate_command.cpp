#include "tools/simulate/simulate_command.hpp"

#include "messages/errc.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/rank_order/rank_order.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/simulation/simulation_trace.hpp"
#include "runtime/selection/written_algorithm.hpp"
#include "tools/training/memory_command.hpp"
#include "tools/console/output_file.hpp"
#include "tools/options/schedule_file.hpp"
#include "tools/simulate/simulate_options.hpp"
#include "tools/simulate/simulate_report.hpp"
#include "tools/training/train_command.hpp"
#include "tools/training/validate_command.hpp"

#include <fmt/format.h>

namespace ringmaster {

namespace {

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;

caf::expected<std::vector<simulated_subject>> algorithms_for(const simulate_options& opts) {
  const auto& told = opts.collective;
  auto request = request_of(told);
  if (!request)
    return std::move(request.error());
  auto chosen = algorithms_of(told);
  if (!chosen)
    return std::move(chosen.error());
  std::vector<simulated_subject> result;
  for (auto* which : *chosen) {
    auto cost = cost_of(which->kind, which->name, *request);
    if (!cost)
      return std::move(cost.error());
    auto in_rank_order = opts.deterministic && order_matters(which->kind, told.datatype, gpu_sim::SUM);
    result.push_back({std::string{which->name}, which->kind, *request, cost->rounds,
                      in_rank_order ? std::nullopt : std::optional{*cost},
                      [which, in_rank_order, of_rank = *request](uint32_t rank) mutable {
                        of_rank.rank = rank;
                        return in_rank_order ? plan_in_rank_order(which->kind, which->name, of_rank)
                                             : plan(which->kind, which->name, of_rank);
                      },
                      in_rank_order});
  }
  return result;
}

caf::expected<std::vector<simulated_subject>> subject_in(const schedule_set& written, const collective_options& told) {
  auto factor = told.bytes ? factor_for("--bytes", *told.bytes, told, written) : uint64_t{1};
  if (!factor)
    return std::move(factor.error());
  auto all = scaled(written, *factor);
  if (!all)
    return std::move(all.error());
  simulated_subject result{algorithm_name_of(told.schedule), all->kind, all->request, all->ranks[0].rounds};
  result.source = [ranks = std::move(all->ranks)](uint32_t rank) { return ranks[rank]; };
  return std::vector<simulated_subject>{std::move(result)};
}

caf::expected<simulation_outcome> run(const simulated_subject& which, const simulate_options& opts) {
  std::vector<simulated_activity> seen;
  simulation_observer observer;
  if (!opts.trace.empty())
    observer = [&](const simulated_activity& x) { seen.push_back(x); };
  auto element_bytes = size_of(opts.collective.datatype);
  uint64_t scratch = 0;
  auto source = [&](uint32_t rank) {
    auto planned = which.source(rank);
    if (planned)
      scratch = std::max(scratch, planned->scratch_count);
    return planned;
  };
  auto result = simulate(which.request.world_size, source, opts.net, element_bytes, observer);
  if (!result)
    return std::move(result.error());
  if (!opts.trace.empty())
    if (auto problem = write_output_file(opts.trace, trace_of(seen, which.request.world_size), "the trace"))
      return problem;
  return simulation_outcome{which, element_bytes, std::move(*result), scratch};
}

/// True if all ended.
caf::expected<bool> run_all(const std::vector<simulated_subject>& chosen, const simulate_options& opts,
                            std::FILE* out) {
  auto as_table = chosen.size() > 1 && !opts.json;
  if (as_table)
    fmt::print(out, "{}", header_of(chosen.front(), size_of(opts.collective.datatype)));
  auto all_ended = true;
  for (const auto& which : chosen) {
    auto x = run(which, opts);
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
  if (!args.empty() && args.front() == "train")
    return train_command(args.subspan(1), out, err);
  if (!args.empty() && args.front() == "memory")
    return memory_command(args.subspan(1), out, err);
  if (!args.empty() && args.front() == "validate")
    return validate_command(args.subspan(1), out, err);
  auto failed = [&](const caf::error& problem, int code) {
    fmt::print(err, "ringmaster simulate: {}\n", render(problem));
    return code;
  };
  auto opts = parse_simulate_options(args);
  if (!opts)
    return failed(opts.error(), exit_usage);
  if (opts->help) {
    fmt::print(out, fmt::runtime(simulate_help), collective_options_help, schedule_option_help);
    return 0;
  }
  const auto& told = opts->collective;
  std::optional<schedule_set> written;
  if (!told.schedule.empty()) {
    auto read = schedules_for(told);
    if (!read)
      return failed(read.error(), exit_usage);
    if (auto problem = check_proof(told.schedule, *read))
      return failed(problem, exit_failed);
    written = std::move(*read);
  }
  auto chosen = written ? subject_in(*written, told) : algorithms_for(*opts);
  if (!chosen)
    return failed(chosen.error(), exit_usage);
  if (auto problem = check_for_ranks(*opts, chosen->front().request.world_size))
    return failed(problem, exit_usage);
  auto all_ended = run_all(*chosen, *opts, out);
  if (!all_ended)
    return failed(all_ended.error(), exit_failed);
  return *all_ended ? 0 : exit_failed;
}

} // namespace ringmaster
