#include "tools/options/commands.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "planner/search/plan_outcome.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/console/ending_signals.hpp"
#include "tools/console/output_file.hpp"
#include "tools/console/progress.hpp"
#include "tools/options/option_table.hpp"
#include "tools/options/trace_limit.hpp"
#include "tools/planning/failures/failure_report.hpp"
#include "tools/planning/laboratory_plan.hpp"
#include "tools/planning/plan_compare.hpp"
#include "tools/planning/plan_options.hpp"
#include "tools/planning/plan_report.hpp"
#include "tools/planning/plan_tables.hpp"
#include "tools/simulated_training/transformer_options.hpp"
#include "training/pictures/front_picture.hpp"
#include "training/pictures/train_picture.hpp"
#include "training/pictures/train_trace.hpp"

#include <caf/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

namespace ringmaster {

using namespace training;

namespace {

/// Files of the best plan's step, as it is simulated: --timeline, --trace, --trace-limit.
struct plan_timeline_options {
  std::string picture, trace;
  std::optional<uint64_t> trace_bytes_max;

  void add_to(option_table& table);
  bool any() const { return !picture.empty() || !trace.empty(); }
  /// The first of these options that was given, or nothing.
  std::string given() const;
  caf::error check() const;
  /// Simulates the best plan of the outcome once more, with its events. `watch` is given the finished part; returning
  /// false stops it. Errors: a plan that is not simulated, or too large to be shown; a file that cannot
  /// be written.
  caf::error write(const training::plan_outcome& x, const std::function<bool(double)>& watch) const;

private:
  caf::error draw(const training::plan_question& asked, const training::plan_simulation& run,
                  const training::training_outcome& found) const;
  caf::error write_trace(const training::plan_simulation& run, const training::training_outcome& found) const;
};

std::string_view note_of(const training_setting& how) {
  return how.cp > 1 || how.ep > 1
           ? "one GPU of each pipeline rank; what shares a sequence or experts sends is within forward and backward"
           : "one GPU of each pipeline rank";
}

/// What a pipeline rank is.
std::string_view row_of(const training_setting& how) {
  return how.schedule == pipeline_schedule::dualpipe ? "rank" : "stage"; // there it has two stages
}

std::string title_of(const plan_question& asked, const training_setting& how) {
  return fmt::format("{} on {} x {}: {}", asked.trained.name, asked.devices, asked.system.name, short_text(how));
}

void plan_timeline_options::add_to(option_table& table) {
  table.file("--timeline", picture)
    .says("FILE", "the best plan's step as a picture, with one GPU of each stage, which its others are like");
  table.file("--trace", trace).says("FILE", "the same for ui.perfetto.dev or chrome://tracing");
  add_trace_limit(table, trace_bytes_max)
    .says("SIZE", "how large a trace may be, at least 64K")
    .otherwise(size_text(trace_bytes_usual));
}

std::string plan_timeline_options::given() const {
  return !picture.empty() ? "--timeline" : !trace.empty() ? "--trace" : trace_bytes_max ? "--trace-limit" : "";
}

caf::error plan_timeline_options::check() const {
  if (trace_bytes_max && trace.empty())
    return invalid("--trace-limit says how large a --trace may be, and there is none");
  return caf::none;
}

caf::error plan_timeline_options::write(const plan_outcome& x, const std::function<bool(double)>& watch) const {
  const auto& best = x.best.front();
  if (!best.simulated)
    return invalid(fmt::format("{}: the best plan, {}, cannot be shown: {}", given(), short_text(best.plan.how),
                               render(best.problem)));
  const plan_simulation run{x.asked, best.plan.how};
  const auto expected = static_cast<double>(run.operations());
  auto all = run.simulate(true,
                          [&](uint64_t now) { return watch(std::min(static_cast<double>(now) / expected, 1.0)); });
  if (!all)
    return with_context(given(), all.error());
  const auto found = first_of_stages(*all, run.shape());
  caf::error problem;
  if (!picture.empty())
    problem = draw(x.asked, run, found);
  if (!trace.empty() && !problem)
    problem = write_trace(run, found);
  return problem;
}

caf::error plan_timeline_options::draw(const plan_question& asked, const plan_simulation& run,
                                       const training_outcome& found) const {
  const auto costs = run.costs();
  train_run shown{run.strategy().name, run.trained(), static_cast<uint32_t>(found.ranks.size()), costs.get(),
                  asked.trained.layers};
  shown.title = title_of(asked, run.how());
  shown.note = note_of(run.how());
  shown.row = row_of(run.how());
  auto drawn = picture_of(shown, found);
  return drawn ? write_output_file(picture, *drawn, "the picture") : with_context("--timeline", drawn.error());
}

caf::error plan_timeline_options::write_trace(const plan_simulation& run, const training_outcome& found) const {
  const auto costs = run.costs();
  const traced_step step{note_of(run.how()), &found, costs.get(), row_of(run.how())};
  auto text = trace_of({&step, 1}, trace_bytes_max.value_or(trace_bytes_usual));
  return text ? write_output_file(trace, *text, "the trace")
              : make_error(code_of(text.error()), fmt::format("--trace: {} (--trace-limit)", render(text.error())));
}

using namespace training;

constexpr size_t best_shown = 10; // plans in the table

/// The command line of `ringmaster plan`.
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
  bool wide = false; ///< Tables show all of their columns.
  std::string svg;
};

/// A line with the progress of each stage. Returns false once a signal asks the program to stop.
class plan_progress {
public:
  explicit plan_progress(const char* what) : shown_(std::in_place, what) {}
  plan_progress() = default;

  bool operator()(double part) {
    shown_->at(part);
    interrupted_ = interrupted_ || ending_signal() != 0;
    return !interrupted_;
  }
  bool operator()(search_stage stage, double part) {
    if (stage_ != stage) {
      shown_.reset(); // clears the line of the stage before
      shown_.emplace(title_of(stage));
      stage_ = stage;
    }
    return (*this)(part);
  }
  bool interrupted() const { return interrupted_; }

private:
  static const char* title_of(search_stage x) {
    switch (x) {
      case search_stage::searching: return "plan";
      case search_stage::simulating: return "plan: simulating the best";
      case search_stage::counting_devices: return "plan: how many GPUs it takes";
      case search_stage::advising: return "plan: fewer GPUs, other batches";
    }
    return "plan";
  }

  std::optional<progress> shown_;
  std::optional<search_stage> stage_;
  bool interrupted_ = false;
};

caf::error refused(std::string why) {
  return invalid(std::move(why));
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
  TRY(trained, x.transformer.model(x.layers));
  x.trained = *trained;
  RETURN_ERROR(x.memory_options.reserve_in(x.transformer.system));
  RETURN_ERROR(x.filter.check(x.trained));
  RETURN_ERROR(x.timeline.check());
  RETURN_ERROR(
    check_outputs_differ({{"--timeline", x.timeline.picture}, {"--trace", x.timeline.trace}, {"--svg", x.svg}}));
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
    RETURN_ERROR(write_output_file(opts.svg, picture_of(points_of(found)), "the picture"));
  if (!opts.timeline.any())
    return caf::none;
  plan_progress watch{"plan: the best one's step"};
  return opts.timeline.write(found, std::ref(watch));
}

search_request request_of(const plan_call_options& opts) {
  search_request result;
  result.asked = {opts.trained, opts.transformer.system, *opts.gpus, *opts.global_batch, opts.filter.filter};
  auto& filter = result.asked.filter;
  filter.computed_in = opts.transformer.computed_in;
  filter.attention = opts.transformer.attention;
  filter.counted = opts.transformer.counted;
  if (opts.transformer.recompute)
    filter.recomputations = {opts.transformer.again};
  opts.memory_options.apply_to(filter);
  result.run = {opts.run.tokens, opts.run.price};
  result.count = best_shown;
  result.has_advice = !opts.csv;
  return result;
}

/// The search's outcome, with what failures leave of the best plan if they are asked for.
caf::expected<plan_outcome> outcome_of(const plan_call_options& opts, std::FILE* err) {
  caf::expected<plan_outcome> result{caf::error{}};
  {
    plan_progress watch;
    result = search_plans(request_of(opts), std::ref(watch));
  }
  if (!result)
    return result;
  const auto& found = result->found;
  if (!opts.json && !opts.csv && found.evaluated > 0) // not on standard output, which is the same each time
    fmt::print(err, "{} plans in {:.2g} s, {:.1f} million a second\n", found.evaluated, result->search_seconds,
               static_cast<double>(found.evaluated) / 1e6 / result->search_seconds);
  if (!opts.failures || result->best.empty())
    return result;
  TRY(question, opts.failures.question(failing_job_of(*result)));
  TRY(failures, find_failures(*question, opts.failures.shrink, opts.failures.plays.value_or(0),
                              opts.failures.life_shape.value_or(1)));
  result->failures = std::move(*failures);
  return result;
}

caf::expected<int> plan_gpus(const plan_call_options& opts, const console& to) {
  block_ending_signals();
  TRY(result, outcome_of(opts, to.err));
  fmt::print(to.out, "{}",
             opts.json  ? ringmaster::json_of(*result)
             : opts.csv ? csv_of(*result)
                        : report_of(*result, page_format::of_console(opts.wide)));
  if (result->best.empty()) {
    if (!opts.svg.empty() || opts.timeline.any())
      fmt::print(to.err, "ringmaster plan: {} is not written: no plan is to be shown\n",
                 opts.svg.empty() ? opts.timeline.given() : "--svg");
    return exit_failed;
  }
  RETURN_ERROR(write_pictures(opts, *result));
  return exit_ok;
}

int plan_laboratory(const plan_call_options& opts, std::FILE* out, std::FILE* err) {
  search_question asked{&opts.costs->laboratory(), *opts.gpus, *opts.layers, *opts.global_batch};
  block_ending_signals();
  plan_progress watch{"plan"};
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
      "lose, where the first one's time and memory go, and the Pareto front. A laboratory's model: every strategy, "
      "with sides, micro-batches and chunks that are powers of two; simulated are those that lower bounds do not rule "
      "out. Prints the ten best, plain data parallel beside them, and the front. Ctrl-C prints what was found so far.");
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
      "a model and a system from files; docs/cost_models.md");
  }

  caf::error check() override { return check_options(opts_); }

  caf::expected<int> run(const console& to) override {
    return opts_.costs->laboratory == nullptr ? plan_gpus(opts_, to) : plan_laboratory(opts_, to.out, to.err);
  }

  plan_call_options opts_;
};

} // namespace

tool_command plan_command() {
  return tool_command::of<plan_call>("plan", "the fastest ways to train a model on N GPUs", {plan_compare_command()});
}

} // namespace ringmaster
