#include "tools/training/plan_command.hpp"

#include "messages/errc.hpp"
#include "runtime/training/transformer/transformer_costs.hpp"
#include "tools/console/progress.hpp"
#include "tools/training/known_cost_models.hpp"
#include "tools/training/plan_report.hpp"
#include "tools/training/transformer_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace ringmaster {

namespace {

using namespace training;

constexpr size_t best_shown = 10;
constexpr uint64_t plan_operations_max = 1'000'000'000; ///< Of one.
constexpr uint64_t operations_max = 150'000'000;        ///< Of the simulations that confirm: some ten seconds and more.

struct plan_options {
  const known_cost_model* costs = *parse_planned_cost_model("transformer");
  std::optional<uint32_t> gpus, layers;
  std::optional<uint32_t> global_batch;
  std::optional<uint64_t> memory;
  transformer_options transformer;
  gpt trained;
  bool json = false;
};

caf::error refused(std::string why) {
  return make_error(errc::invalid_argument, std::move(why));
}

caf::error check_options(plan_options& x) {
  if (!x.gpus)
    return refused(x.costs->laboratory == nullptr ? "--gpus is missing: say how many, such as --gpus 1024"
                                                  : "--ranks is missing: say how many, such as --ranks 32");
  if (!x.global_batch)
    return refused("--global-batch is missing: say how many samples a step has, such as --global-batch 1536");
  if (x.costs->laboratory != nullptr) {
    if (auto given = x.transformer.given(); !given.empty())
      return refused(fmt::format("{} is of a transformer, not of --cost-model {}", given, x.costs->name));
    return x.layers ? caf::none : refused("--layers is missing: say how many, such as --layers 64");
  }
  if (x.memory)
    return refused("--memory is of --cost-model lab and puzzles; a transformer's is its system's memory_bytes");
  auto trained = x.transformer.model(x.layers);
  if (!trained)
    return std::move(trained.error());
  x.trained = *trained;
  return caf::none;
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

/// `watch` is told which part of it is done.
confirmed_plan confirm(const plan_question& asked, const planned& plan, uint64_t& operations_left,
                       const std::function<void(double part)>& watch) {
  const auto& how = plan.how;
  const auto m = model_of(asked.trained, how);
  auto* which = strategy_of(name_of(how.schedule));
  if (auto problem = which->check(m, asked.devices))
    return {plan, {}, render(problem)};
  const auto operations = uint64_t{how.micro_batches()} * m.layers / how.shape.pipeline * 10 * asked.devices;
  if (operations > operations_left)
    return {plan, {}, "too many operations"};
  auto costs = transformer_costs(asked.trained, asked.system, how);
  auto done = simulate(
    [&](rank& self) { return which->run(self, m); }, m, asked.devices, *costs, false, plan_operations_max,
    [&](uint64_t done_now) { watch(static_cast<double>(done_now) / static_cast<double>(operations)); });
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
  progress shown{"plan: simulating the best"};
  for (auto& plan : best)
    result.push_back(confirm(asked, plan, operations_left, [&](double part) {
      shown.at((static_cast<double>(result.size()) + std::min(part, 1.0)) / static_cast<double>(best.size()));
    }));
  const auto room = asked.system.memory_bytes - asked.system.reserved_bytes;
  if (std::ranges::all_of(result, [](auto& x) { return x.simulated.has_value(); }))
    std::ranges::stable_sort(result, {}, [&](auto& x) {
      return std::pair{x.simulated->memory_bytes > room, x.simulated->seconds};
    });
  return result;
}

int plan_gpus(const plan_options& opts, std::FILE* out, std::FILE* err) {
  plan_question asked{opts.trained, opts.transformer.system, *opts.gpus, *opts.global_batch};
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

search_outcome search(const search_question& asked, uint64_t memory_limit) {
  progress shown{"plan"};
  return search_strategies(asked.layers, asked.global_batch, asked.ranks, *asked.costs, memory_limit, best_shown,
                           [&](double part) { shown.at(part); });
}

int plan_laboratory(const plan_options& opts, std::FILE* out) {
  search_question asked{&opts.costs->laboratory(), *opts.gpus, *opts.layers, *opts.global_batch};
  auto found = search(asked, opts.memory.value_or(UINT64_MAX));
  fmt::print(out, "{}", opts.json ? json_of(asked, found) : report_of(asked, found));
  return found.best.empty() ? exit_failed : 0;
}

class plan_call final : public command_call {
  void declare(option_table& table) override {
    auto& x = opts_;
    table.form("[--model G] --gpus N --global-batch B [options]");
    table.form("--cost-model lab|puzzles --ranks N --layers L --global-batch B [options]");
    table.about(
      "Searches the fastest ways to train. A transformer: every tensor x data x pipeline parallel division, "
      "micro-batch, schedule, chunks, recomputation, sequence parallelism and ZeRO stage, in closed form; the ten "
      "best are then simulated operation by operation. Prints the ten best with time, MFU and memory, why the "
      "next ones lose, and the Pareto front of time and memory. A laboratory's model: every strategy, with sides, "
      "micro-batches and chunks that are powers of two; simulated are those that lower bounds do not rule out. "
      "Prints the ten best, plain data parallel beside them, and the front.");
    table.parsed("--cost-model", x.costs, parse_planned_cost_model)
      .says("M", "{words}")
      .offers(cost_model_names(true))
      .otherwise(std::string{x.costs->name});
    table.number("--gpus", x.gpus, 1, 65536).also("--ranks").says("N", "1 to 65536");
    table.number("--layers", x.layers, 1, 65536).says("L", "").otherwise("the model's");
    table.number("--global-batch", x.global_batch, 1, 1 << 30).says("B", "sequences or samples of a step");
    table.number("--memory", x.memory, 1).says("M", "of the laboratories' units, what a rank may hold");
    table.flag("--json", x.json).says("one object");
    table.begin_group("Of the cost model transformer:");
    x.transformer.add_model_to(table);
    x.transformer.add_system_to(table);
    table.add_example("ringmaster plan --model gpt3-175b --gpus 1024 --global-batch 1536", "the fastest that fit");
  }

  caf::error check() override { return check_options(opts_); }

  caf::expected<int> run(const console& to) override {
    return opts_.costs->laboratory == nullptr ? plan_gpus(opts_, to.out, to.err) : plan_laboratory(opts_, to.out);
  }

  plan_options opts_;
};

} // namespace

tool_command plan_command() {
  return tool_command::of<plan_call>("plan", "the fastest ways to train a model on so many GPUs");
}

} // namespace ringmaster
