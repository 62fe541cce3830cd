#include "tools/training/plan_command.hpp"

#include "messages/errc.hpp"
#include "runtime/training/transformer/transformer_costs.hpp"
#include "tools/options/option_table.hpp"
#include "tools/training/plan_report.hpp"
#include "tools/training/transformer_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace ringmaster {

namespace {

using namespace training;

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;
constexpr uint64_t operations_max = 150'000'000; ///< Of the simulations that confirm: some ten seconds and more.

constexpr auto plan_help = R"(usage: ringmaster plan [--model G] --gpus N --global-batch B [options]
       ringmaster plan --cost-model lab|puzzles --ranks N --layers L --global-batch B [options]

Searches the fastest ways to train. A transformer: every tensor x data x pipeline parallel division, micro-batch,
schedule, chunks, recomputation, sequence parallelism and ZeRO stage, in closed form; the ten best are then simulated
operation by operation. Prints the ten best with time, MFU and memory, why the next ones lose, and the Pareto front of
time and memory. A laboratory's model: every strategy, with sides, micro-batches and chunks that are powers of two;
simulated are those that lower bounds do not rule out. Prints the ten best, plain data parallel beside them, and the
front.

  --model G           a known model (gpt3-175b); --hidden, --heads, --layers, --sequence, --vocabulary change it
  --system S          a100-80g, a100-40g, h100-80g, h200-141g, cpu-2core, or a JSON file (a100-80g)
  --gpus N, --ranks N   1 to 65536
  --global-batch B    sequences or samples of a step
  --memory M          of the laboratories' units, what a rank may hold
  --json              one object
  --help              this text
)";

struct plan_options {
  std::string cost_model = "transformer";
  std::optional<uint32_t> gpus, layers;
  uint32_t global_batch = 0;
  std::optional<uint64_t> memory;
  transformer_options transformer;
  gpt trained;
  bool json = false;
  bool help = false;
};

caf::error refused(std::string why) {
  return make_error(errc::invalid_argument, std::move(why));
}

caf::error check(plan_options& x) {
  if (!x.gpus)
    return refused(x.cost_model == "transformer" ? "--gpus is missing: say how many, such as --gpus 1024"
                                                 : "--ranks is missing: say how many, such as --ranks 32");
  if (x.global_batch == 0)
    return refused("--global-batch is missing: say how many samples a step has, such as --global-batch 1536");
  if (x.cost_model != "transformer") {
    if (auto given = x.transformer.given(); !given.empty())
      return refused(fmt::format("{} is of a transformer, not of --cost-model {}", given, x.cost_model));
    return x.layers ? caf::none : refused("--layers is missing: say how many, such as --layers 64");
  }
  if (x.memory)
    return refused("--memory is of --cost-model lab and puzzles; a transformer's is its system's memory_bytes");
  if (x.transformer.recompute)
    return refused("--recompute is what plan searches, too; leave it out");
  auto trained = x.transformer.model(x.layers);
  if (!trained)
    return std::move(trained.error());
  x.trained = *trained;
  return caf::none;
}

caf::expected<plan_options> parse(std::span<const std::string> args) {
  plan_options result;
  option_table table{"plan"};
  table.word("--cost-model", result.cost_model, {"transformer", "lab", "puzzles"});
  table.number("--gpus", result.gpus, 1, 65536);
  table.number("--ranks", result.gpus, 1, 65536);
  table.number("--layers", result.layers, 1, 65536);
  table.number("--global-batch", result.global_batch, 1, 1 << 30);
  table.number("--memory", result.memory, 1);
  result.transformer.add_to(table);
  table.flag("--json", result.json);
  if (auto problem = table.read(args))
    return problem;
  result.help = table.help();
  if (result.help)
    return result;
  if (auto problem = check(result))
    return problem;
  return result;
}

/// The strategy and its model that a plan stands for.
model model_of(const gpt& trained, const parallel_setting& how) {
  model m;
  m.layers = trained.layers;
  m.global_batch = how.global_batch;
  m.micro_batch = how.micro_batch;
  m.chunks = how.chunks;
  m.tensor = how.shape.tensor;
  m.data = how.shape.data;
  m.sequence_parallel = how.sequence_parallel && how.shape.tensor > 1;
  m.zero = how.zero;
  return m;
}

confirmed_plan confirm(const plan_question& asked, const planned& plan, uint64_t& operations_left) {
  const auto& how = plan.how;
  const auto m = model_of(asked.trained, how);
  auto* which = strategy_of(name_of(how.schedule));
  if (auto problem = which->check(m, asked.devices))
    return {plan, {}, render(problem)};
  const auto operations = uint64_t{how.micro_batches()} * m.layers / how.shape.pipeline * 10 * asked.devices;
  if (operations > operations_left)
    return {plan, {}, "too many operations"};
  auto costs = transformer_costs(asked.trained, asked.system, how);
  auto done = simulate([&](rank& self) { return which->run(self, m); }, m, asked.devices, *costs);
  if (!done)
    return {plan, {}, render(done.error())};
  operations_left -= std::min(operations_left, done->operations);
  return {plan,
          simulated_plan{done->end, static_cast<double>(done->ranks[done->peak_rank].peak_memory), done->operations},
          {}};
}

/// The best, all simulated if that takes not too long; then by what is found, those that do not fit last.
std::vector<confirmed_plan> confirm_all(const plan_question& asked, const std::vector<planned>& best) {
  std::vector<confirmed_plan> result;
  auto operations_left = operations_max;
  for (auto& plan : best)
    result.push_back(confirm(asked, plan, operations_left));
  const auto room = asked.system.memory_bytes - asked.system.reserved_bytes;
  if (std::ranges::all_of(result, [](auto& x) { return x.simulated.has_value(); }))
    std::ranges::stable_sort(result, {}, [&](auto& x) {
      return std::pair{x.simulated->memory_bytes > room, x.simulated->seconds};
    });
  return result;
}

int plan_gpus(const plan_options& opts, std::FILE* out, std::FILE* err) {
  plan_question asked{opts.trained, opts.transformer.system, *opts.gpus, opts.global_batch};
  auto begun = std::chrono::steady_clock::now();
  auto found = plan_transformer(asked.trained, asked.system, asked.devices, asked.global_batch);
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  if (!opts.json && found.evaluated > 0) // not with the result, which is the same each time
    fmt::print(err, "{} plans in {:.2g} s, {:.1f} million a second\n", found.evaluated, seconds,
               static_cast<double>(found.evaluated) / 1e6 / seconds);
  const auto best = confirm_all(asked, found.best);
  fmt::print(out, "{}", opts.json ? json_of(asked, found, best) : report_of(asked, found, best));
  return found.best.empty() ? exit_failed : 0;
}

int plan_laboratory(const plan_options& opts, std::FILE* out) {
  search_question asked{*cost_model_of(opts.cost_model), *opts.gpus, *opts.layers, opts.global_batch};
  auto found = search_strategies(asked.layers, asked.global_batch, asked.ranks, *asked.costs,
                                 opts.memory.value_or(UINT64_MAX));
  fmt::print(out, "{}", opts.json ? json_of(asked, found) : report_of(asked, found));
  return found.best.empty() ? exit_failed : 0;
}

} // namespace

int plan_command(std::span<const std::string> args, std::FILE* out, std::FILE* err) {
  auto opts = parse(args);
  if (!opts) {
    fmt::print(err, "ringmaster plan: {}\n", render(opts.error()));
    return exit_usage;
  }
  if (opts->help) {
    fmt::print(out, "{}", plan_help);
    return 0;
  }
  return opts->cost_model == "transformer" ? plan_gpus(*opts, out, err) : plan_laboratory(*opts, out);
}

} // namespace ringmaster
