#include "tools/planning/plan_command.hpp"

#include "messages/errc.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/training/pictures/front_picture.hpp"
#include "tools/console/ending_signals.hpp"
#include "tools/console/output_file.hpp"
#include "tools/console/progress.hpp"
#include "tools/planning/failure_options.hpp"
#include "tools/planning/in_turns.hpp"
#include "tools/planning/laboratory_plan.hpp"
#include "tools/planning/plan_compare.hpp"
#include "tools/planning/plan_confirm.hpp"
#include "tools/planning/plan_options.hpp"
#include "tools/planning/plan_text.hpp"
#include "tools/planning/plan_timeline.hpp"
#include "tools/training/known_cost_models.hpp"
#include "tools/training/transformer_options.hpp"

#include <fmt/format.h>

#include <chrono>
#include <mutex>

namespace ringmaster {

namespace {

using namespace training;

constexpr size_t best_shown = 10;

struct plan_call_options {
  const known_cost_model* costs = *parse_planned_cost_model("transformer");
  std::optional<uint32_t> gpus, layers, global_batch;
  std::optional<uint64_t> memory;
  transformer_options transformer;
  plan_filter_options filter;
  plan_memory_options memory_options;
  plan_run_options run;
  failure_options failures;
  plan_timeline_options timeline;
  language_model trained;
  bool json = false, csv = false;
  std::string svg;
};

caf::error refused(std::string why) {
  return make_error(errc::invalid_argument, std::move(why));
}

caf::error check_laboratory(const plan_call_options& x) {
  for (auto& given : {x.transformer.given(), x.filter.given(), x.failures.given(), x.timeline.given(),
                      std::string{x.run.tokens ? "--tokens" : ""}, std::string{x.csv ? "--csv" : ""},
                      std::string{x.svg.empty() ? "" : "--svg"}})
    if (!given.empty())
      return refused(fmt::format("{} is of a transformer, not of --cost-model {}", given, x.costs->name));
  return x.layers ? caf::none : refused("--layers is missing: say how many, such as --layers 64");
}

caf::error check_options(plan_call_options& x) {
  if (!x.gpus)
    return refused(x.costs->laboratory == nullptr ? "--gpus is missing: say how many, such as --gpus 1024"
                                                  : "--ranks is missing: say how many, such as --ranks 32");
  if (!x.global_batch)
    return refused("--global-batch is missing: say how many samples a step has, such as --global-batch 1536");
  if (x.json && x.csv)
    return refused("--json and --csv are two ways to print the same: say one");
  if (x.run.price && !x.run.tokens)
    return refused("--price is of a run: say how long it is, such as --tokens 15T");
  if (x.costs->laboratory != nullptr)
    return check_laboratory(x);
  if (x.memory)
    return refused("--memory is of --cost-model lab and puzzles; a transformer's is its system's memory_bytes");
  auto trained = x.transformer.model(x.layers);
  if (!trained)
    return std::move(trained.error());
  x.trained = *trained;
  if (auto problem = x.filter.check(x.trained))
    return problem;
  if (auto problem = x.timeline.check())
    return problem;
  return x.failures.check();
}

/// A line with progress; false when the program is to end.
class watched_progress {
public:
  explicit watched_progress(std::string what) : shown_(std::move(what)) {}
  bool operator()(double part) {
    shown_.at(part);
    interrupted_ = ending_signal() != 0 || interrupted_;
    return !interrupted_;
  }
  bool interrupted() const { return interrupted_; }

private:
  progress shown_;
  bool interrupted_ = false;
};

front_points points_of(const plan_outcome& x) {
  front_points result;
  result.title = fmt::format("{} on {} x {} in {}, a global batch of {}", x.asked.trained.name, x.asked.devices,
                             x.asked.system.name, name_of(x.asked.filter.computed_in), x.asked.global_batch);
  result.room_bytes = x.asked.system.room_bytes();
  for (auto& each : x.found.pareto)
    result.points.push_back({each.cost.seconds, each.cost.memory_bytes, short_text(each.how)});
  return result;
}

/// Several parts of the search at once.
transformer_plans search_in_turns(const plan_question& asked, watched_progress& watch) {
  plan_search search{asked, best_shown};
  std::mutex mutex;
  size_t done = 0;
  auto look = [&](size_t more) {
    std::scoped_lock lock{mutex};
    return watch(static_cast<double>(done += more) / static_cast<double>(search.shapes()));
  };
  in_turns(plan_search::parts, [&](size_t part) {
    if (look(0))
      search.run(part, [&] { return look(1); });
  });
  auto result = search.take();
  result.interrupted = watch.interrupted();
  return result;
}

plan_outcome find_plans(const plan_call_options& opts, std::FILE* err) {
  plan_outcome result;
  result.asked = {opts.trained, opts.transformer.system, *opts.gpus, *opts.global_batch, opts.filter.filter};
  result.asked.filter.computed_in = opts.transformer.computed_in;
  result.asked.filter.attention = opts.transformer.attention;
  if (opts.transformer.recompute)
    result.asked.filter.recomputations = {opts.transformer.again};
  opts.memory_options.apply_to(result.asked.filter);
  result.run = {opts.run.tokens, opts.run.price};
  auto begun = std::chrono::steady_clock::now();
  {
    watched_progress watch{"plan"};
    result.found = search_in_turns(result.asked, watch);
  }
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  if (!opts.json && !opts.csv && result.found.evaluated > 0) // not with the result, which is the same each time
    fmt::print(err, "{} plans in {:.2g} s, {:.1f} million a second\n", result.found.evaluated, seconds,
               static_cast<double>(result.found.evaluated) / 1e6 / seconds);
  return result;
}

/// Of a run by the best plan.
caf::expected<failure_findings> failures_of(const plan_call_options& opts, const plan_question& asked,
                                            const confirmed_plan& best) {
  const auto& plan = best.plan;
  failure_question job;
  job.gpus = asked.devices;
  const auto together = asked.system.devices_per_tray > 0 ? asked.system.devices_per_tray
                                                          : asked.system.devices_per_host;
  job.gpus_per_host = static_cast<uint32_t>(std::min<double>(together, asked.devices));
  job.copies = asked.trained.experts.count > 0 ? std::min(plan.how.shape.data, plan.how.expert_replicas())
                                               : plan.how.shape.data;
  job.sharded = plan.how.zero > 0 || plan.how.shard > 0;
  job.step_s = best.seconds();
  if (opts.run.tokens) // without failures; a --run that is told goes before
    job.run_s = *opts.run.tokens * job.step_s / (static_cast<double>(asked.global_batch) * asked.trained.sequence);
  auto question = opts.failures.question(job);
  if (!question)
    return std::move(question.error());
  return find_failures(*question, opts.failures.shrink, opts.failures.plays.value_or(0),
                       opts.failures.life_shape.value_or(1));
}

caf::error write_pictures(const plan_call_options& opts, const plan_outcome& found) {
  if (!opts.svg.empty())
    if (auto problem = write_output_file(opts.svg, picture_of(points_of(found)), "the picture"))
      return problem;
  if (!opts.timeline.any())
    return caf::none;
  watched_progress watch{"plan: the best one's step"};
  return opts.timeline.write(found, std::ref(watch));
}

caf::expected<int> plan_gpus(const plan_call_options& opts, const console& to) {
  block_ending_signals();
  auto result = find_plans(opts, to.err);
  if (result.found.endless > 0)
    return refused(fmt::format("{} of {} have no finite time on {}: a constant of the system, or a size of the model, "
                               "is beyond what can be counted",
                               result.found.endless, counted(result.found.evaluated, "plan"),
                               result.asked.system.name));
  {
    watched_progress watch{"plan: simulating the best"};
    result.best = confirm_plans(result.asked, result.found,
                                [&](double part) { return watch(part) && !result.found.interrupted; });
  }
  if (result.found.evaluated == 0)
    result.near = near_questions_that_divide(result.asked);
  else if (result.found.best.empty()) {
    watched_progress watch{"plan: how many GPUs it takes"};
    result.least_devices = least_devices(result.asked, std::ref(watch));
  }
  if (!result.best.empty() && !opts.csv) {
    watched_progress watch{"plan: fewer GPUs, other batches"};
    result.fewer = faster_on_fewer(result.asked, result.found, result.best.front().seconds(), std::ref(watch));
    result.batch = faster_batch(result.asked, result.found, result.best.front().seconds(), std::ref(watch));
  }
  if (opts.failures && !result.best.empty()) {
    auto found = failures_of(opts, result.asked, result.best.front());
    if (!found)
      return std::move(found.error());
    result.failures = std::move(*found);
  }
  fmt::print(to.out, "{}", opts.json ? json_of(result) : opts.csv ? csv_of(result) : report_of(result));
  if (result.best.empty()) {
    if (!opts.svg.empty() || opts.timeline.any())
      fmt::print(to.err, "ringmaster plan: {} is not written: no plan is to be shown\n",
                 opts.svg.empty() ? opts.timeline.given() : "--svg");
    return exit_failed;
  }
  if (auto problem = write_pictures(opts, result))
    return problem;
  return exit_ok;
}

int plan_laboratory(const plan_call_options& opts, std::FILE* out, std::FILE* err) {
  search_question asked{&opts.costs->laboratory(), *opts.gpus, *opts.layers, *opts.global_batch};
  block_ending_signals();
  watched_progress watch{"plan"};
  auto found = search_strategies(asked.layers, asked.global_batch, asked.ranks, *asked.costs,
                                 opts.memory.value_or(UINT64_MAX), best_shown, std::ref(watch));
  if (watch.interrupted())
    fmt::print(err, "plan: the search was interrupted: this is the best of what had been simulated\n");
  fmt::print(out, "{}", opts.json ? json_of(asked, found) : report_of(asked, found));
  return found.best.empty() ? exit_failed : 0;
}

class plan_call final : public command_call {
  void declare(option_table& table) override {
    auto& x = opts_;
    table.form("[--model M] --gpus N --global-batch B [options]");
    table.form("--cost-model lab|puzzles --ranks N --layers L --global-batch B [options]");
    table.about(
      "Searches the fastest ways to train. A transformer: every division into tensor x context x data x pipeline "
      "ranks, with experts over the first three, every micro-batch, schedule, number of chunks, recomputation, "
      "sequence parallelism, ZeRO stage, FSDP and HSDP, in closed form; the ten best are then simulated operation by "
      "operation, and others that might be faster. Prints the ten best with time, MFU and memory, why the next ones "
      "lose, where the first one's time "
      "and "
      "memory go, and the Pareto front. A laboratory's model: every strategy, with sides, micro-batches and chunks "
      "that "
      "are powers of two; simulated are those that lower bounds do not rule out. Prints the ten best, plain data "
      "parallel beside them, and the front. Ctrl-C prints what was found so far.");
    table.parsed("--cost-model", x.costs, parse_planned_cost_model)
      .says("M", "{words}")
      .offers(cost_model_names(true))
      .otherwise(std::string{x.costs->name});
    table.number("--gpus", x.gpus, 1, 65536).also("--ranks").says("N", "1 to 65536");
    table.number("--layers", x.layers, 1, 65536).says("L", "").otherwise("the model's");
    table.number("--global-batch", x.global_batch, 1, 1 << 30).says("B", "sequences or samples of a step");
    table.number("--memory", x.memory, 1).says("M", "of the laboratories' units, what a rank may hold");
    table.flag("--json", x.json).says("one object");
    table.flag("--csv", x.csv).says("a line for each of the best, and of the front");
    table.file("--svg", x.svg).says("FILE", "the Pareto front as a picture");
    x.timeline.add_to(table);
    table.begin_group("Of the cost model transformer:");
    x.transformer.add_to(table);
    x.memory_options.add_to(table);
    x.run.add_to(table);
    table.begin_group("Which plans of a transformer are searched:");
    x.filter.add_to(table);
    table.begin_group("Of a run in which hosts fail:");
    x.failures.add_to(table);
    table.add_example("ringmaster plan --model llama3.1-405b --system h100-80g --gpus 1024 --global-batch 512",
                      "the fastest that fit");
    table.add_example("ringmaster plan --model deepseek-v3 --system gb200-nvl72 --precision mxfp8 --gpus 256 "
                      "--global-batch 4096 --expert 32..64 --tokens 15T --price 2.50",
                      "with experts over 32 or 64 GPUs; days and cost");
    table.add_example(
      "ringmaster plan --model config.json --sequence 4096 --system ours.json --gpus 64 --global-batch 512",
      "a model by Hugging Face's file, on GPUs by one's own; docs/cost_models.md");
  }

  caf::error check() override { return check_options(opts_); }

  caf::expected<int> run(const console& to) override {
    return opts_.costs->laboratory == nullptr ? plan_gpus(opts_, to) : plan_laboratory(opts_, to.out, to.err);
  }

  plan_call_options opts_;
};

} // namespace

tool_command plan_command() {
  return tool_command::of<plan_call>("plan", "the fastest ways to train a model on so many GPUs",
                                     {plan_compare_command()});
}

} // namespace ringmaster
