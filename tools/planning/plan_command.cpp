#include "tools/planning/plan_command.hpp"

#include "messages/errc.hpp"
#include "tools/console/output_file.hpp"
#include "tools/planning/laboratory_plan.hpp"
#include "tools/planning/plan_compare.hpp"
#include "tools/planning/plan_search.hpp"
#include "tools/planning/plan_text.hpp"
#include "training/pictures/front_picture.hpp"

#include <fmt/format.h>

namespace ringmaster {

namespace {

using namespace training;

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
  if (x.wide && (x.json || x.csv))
    return refused(fmt::format("--wide is of tables in text: leave out {}", x.json ? "--json" : "--csv"));
  if (auto given = x.failures.given(); x.csv && !given.empty())
    return refused(given + " is of the whole run, which no line of --csv tells: say --json");
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
  if (auto problem = x.memory_options.reserve_in(x.transformer.system))
    return problem;
  if (auto problem = x.filter.check(x.trained))
    return problem;
  if (auto problem = x.timeline.check())
    return problem;
  if (auto problem = check_outputs_differ(
        {{"--timeline", x.timeline.picture}, {"--trace", x.timeline.trace}, {"--svg", x.svg}}))
    return problem;
  return x.failures.check();
}

front_points points_of(const plan_outcome& x) {
  front_points result;
  result.title = fmt::format("{} on {} x {} in {}, a global batch of {}", x.asked.trained.name, x.asked.devices,
                             x.asked.system.name, name_of(x.asked.filter.computed_in), x.asked.global_batch);
  result.room_bytes = x.asked.system.room_bytes();
  for (auto& each : x.found.pareto)
    result.points.push_back({each.cost.seconds, each.cost.memory_bytes, short_text(each.how)});
  return result;
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
  auto result = search_plans(opts, to.err);
  if (!result)
    return std::move(result.error());
  fmt::print(to.out, "{}",
             opts.json  ? json_of(*result)
             : opts.csv ? csv_of(*result)
                        : report_of(*result, page_format::of_console(opts.wide)));
  if (result->best.empty()) {
    if (!opts.svg.empty() || opts.timeline.any())
      fmt::print(to.err, "ringmaster plan: {} is not written: no plan is to be shown\n",
                 opts.svg.empty() ? opts.timeline.given() : "--svg");
    return exit_failed;
  }
  if (auto problem = write_pictures(opts, *result))
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
  fmt::print(out, "{}",
             opts.json ? json_of(asked, found) : report_of(asked, found, page_format::of_console(opts.wide)));
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
    table.flag("--wide", x.wide)
      .says("tables show all columns; else lines have at most 100 columns (fewer where $COLUMNS says so, at least 60), "
            "and tables of a transformer's plans leave out, as far as that takes: closed GB, closed s, MFU %, SP, vs "
            "first, recompute, sharding, MBS, VPP");
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
    table.common({"--model", "--system", "--gpus", "--global-batch", "--sequence", "--precision", "--recompute",
                  "--tokens", "--wide", "--json"});
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
