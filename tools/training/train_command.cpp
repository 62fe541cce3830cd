#include "tools/training/train_command.hpp"

#include "actors/configuration/configuration.hpp"
#include "actors/configuration/settings.hpp"
#include "messages/errc.hpp"
#include "runtime/text/json_value.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/training/simulated/simulator.hpp"
#include "runtime/training/strategies/strategies.hpp"
#include "runtime/training/transformer/measured_costs.hpp"
#include "tools/options/nearest_word.hpp"
#include "tools/options/option_table.hpp"
#include "tools/console/output_file.hpp"
#include "tools/training/train_picture.hpp"
#include "tools/training/train_report.hpp"
#include "tools/training/transformer_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <optional>
#include <thread>

namespace ringmaster {

namespace {

using namespace training;

constexpr uint64_t batch_max = 1 << 30; ///< Samples: with 65536 layers of the lab's, memory still is below 2^63.
constexpr uint64_t micro_batches_max = 1 << 20;
constexpr uint64_t weights_max = 1 << 24; ///< Some ten gigabytes of handles.
constexpr int exit_failed = 1;
constexpr int exit_usage = 2;

constexpr auto train_help = R"(usage: ringmaster simulate train --strategy S [options]

Runs a step of training in virtual time: a strategy's program on every rank, under a published cost model. Prints time,
memory, MFU, and what each rank did. The strategies:

{0}
  --strategy S        one of these, or all: a table of them, each with those of --micro-batch and --chunks that it takes
  --ranks N           1 to 65536 (8)
  --layers L          1 to 65536 (32)
  --global-batch B    samples of a step, of all ranks (32)
  --micro-batch B     samples that a rank works on at once (1; ddp, wsdp, zero1, zero2, zero3: all that it has)
  --chunks V          parts of the model that a rank has in interleaved pipelines; layers of a bucket of ddp-overlap (2)
  --tensor T          ranks that share each layer, in tensor, 3d and pipelines (as the strategy likes, 1 in pipelines)
  --data D            ranks, or groups of them, that have other samples; the rest are a pipeline's stages (the same)
  --sequence-parallel   between layers, tensor-parallel ranks share the positions
  --zero Z            what of a pipeline's stage its data-parallel ranks share, as ZeRO's stages 1 to 3 do (0)
  --cost-model M      lab: seconds, on a GPU of 1000 TFLOP/s; puzzles: Sasha Rush's abstract units; transformer: a GPT
                      on a system, seconds and bytes; measured: on hosts like this one, a rank each, with the
                      collectives' costs that `ringmaster tune` wrote into config/caf-application.conf (lab)
  of transformer and measured:
  --model G           gpt3-175b or another known one, whose layers are --layers then ({1})
  --hidden H --heads A --sequence S --vocabulary V    each as the model's, if it is not given
  --system S          of transformer: a100-80g, a100-40g, h100-80g, h200-141g, cpu-2core, or a JSON file (a100-80g)
  --recompute R       none, selective, full: what a backward runs again (none)
  --json              one object instead of the text
  --trace FILE        a trace for ui.perfetto.dev or chrome://tracing: a track a rank, and its memory; one unit of the
                      puzzles' time is a millisecond there
  --svg FILE          a picture of the schedule as papers draw it: a row a rank, a box for each micro-batch's forward
                      and backward, and the rank's memory; of at most 32 ranks
  --help              this text

Time is reported as the published laboratories do, to the start of the last event; the end is given, too.
)";

struct train_options {
  const known_strategy* which = nullptr;
  training::model trained{.layers = 32, .global_batch = 32};
  uint32_t ranks = 8;
  std::string cost_model_name = "lab";
  const cost_model* costs = nullptr;
  std::unique_ptr<cost_model> own_costs;
  transformer_options transformer;
  bool json = false;
  std::string trace;
  std::string svg;
  bool help = false;
  bool all = false;
  bool one_of_all = false; ///< A line of the table.
  std::optional<uint64_t> micro_batch; ///< As told.
  std::optional<uint32_t> chunks;      ///< The same.
};

std::string known_strategies() {
  std::string result;
  for (auto& x : strategies())
    result += fmt::format("  {:<19} {}\n", x.name, x.what);
  return result;
}

caf::expected<const known_strategy*> parse_strategy(const std::string& text) {
  if (auto* found = strategy_of(text))
    return found;
  std::vector<std::string> names;
  for (auto& x : strategies())
    names.emplace_back(x.name);
  const auto near = nearest_word(text, names);
  return make_error(errc::invalid_argument,
                    fmt::format("there is no strategy \"{}\"{}: {}", text,
                                near.empty() ? "; there are" : fmt::format(": did you mean {}? There are", near),
                                fmt::join(names, ", ")));
}

caf::expected<std::string> parse_cost_model(const std::string& text) {
  if (text == "transformer" || text == "measured")
    return text;
  auto known = cost_model_of(text);
  if (!known)
    return make_error(errc::invalid_argument, render(known.error()) + ", transformer, measured");
  return text;
}

/// --micro-batch and --chunks as this strategy has them, where they are not told; and where it has others than are told.
/// What is told to all of them is for those that take it.
caf::error cut_option(train_options& x) {
  auto& m = x.trained;
  const bool cuts = x.which->cut != batch_cut::never;
  const bool takes_chunks = x.which->chunks == chunk_use::parts || x.which->chunks == chunk_use::buckets;
  if (x.one_of_all && !cuts)
    x.micro_batch.reset();
  if (x.one_of_all && !takes_chunks)
    x.chunks.reset();
  auto refused = [&](const char* option, std::string why) {
    return make_error(errc::invalid_argument,
                      fmt::format("{}: {} on {} ranks {}", option, x.which->name, x.ranks, why));
  };
  m.micro_batch = default_micro_batch(*x.which, m, x.ranks);
  if (!cuts && x.micro_batch.value_or(m.micro_batch) != m.micro_batch)
    return refused("--micro-batch", fmt::format("works on all {} samples of a rank at once", m.micro_batch));
  m.micro_batch = x.micro_batch.value_or(m.micro_batch);
  m.chunks = x.chunks.value_or(training::model{}.chunks);
  const auto chunks = chunks_of(*x.which, m);
  if (x.chunks && !takes_chunks && *x.chunks != chunks)
    return refused("--chunks", fmt::format("has {} of the model on each", chunks == 1 ? "one part" : "two parts"));
  return caf::none;
}

/// Options that this strategy would not go by.
caf::error unused_option(const train_options& x) {
  auto& m = x.trained;
  const auto shape = x.which->shape(m, x.ranks);
  auto refused = [&](const char* option, std::string why) {
    return make_error(errc::invalid_argument,
                      fmt::format("{}: {} on {} ranks {}", option, x.which->name, x.ranks, why));
  };
  if (m.tensor != 0 && m.tensor != shape.tensor)
    return refused("--tensor", fmt::format("has {} tensor-parallel ones", shape.tensor));
  if (m.data != 0 && m.data != shape.data)
    return refused("--data", fmt::format("has {} data-parallel ones", shape.data));
  if (m.sequence_parallel && shape.tensor == 1)
    return refused("--sequence-parallel", "has no tensor-parallel ones that could share the positions");
  if (m.zero > 0 && x.which->shares != sharing::stages)
    return refused("--zero",
                   "has no stages; --zero is of pipelines, the strategies zero1, zero2 and zero3 are by themselves");
  if (m.zero > 0 && shape.data == 1)
    return refused("--zero", "has no data-parallel ones that could share a stage: give --data");
  if (m.zero > 0 && m.zero < 3 && x.which->gathers == sharded::a_stage)
    return refused("--zero", "shares a stage as ZeRO's stage 3 does");
  return caf::none;
}

/// What one process can hold.
caf::error too_large(const train_options& x) {
  const auto shape = x.which->shape(x.trained, x.ranks);
  const auto weights = uint64_t{x.ranks} * (x.trained.layers / shape.pipeline + 1);
  if (weights > weights_max)
    return make_error(errc::invalid_argument,
                      fmt::format("{} ranks would hold some {} layers' weights, more than can be simulated, {}",
                                  x.ranks, weights, weights_max));
  if (auto count = micro_batch_count(x.trained, shape.data); count > micro_batches_max)
    return make_error(errc::invalid_argument,
                      fmt::format("{} micro-batches are more than can be simulated, {}: take a larger --micro-batch",
                                  count, micro_batches_max));
  return caf::none;
}

/// Options of another cost model.
caf::error misplaced_option(const train_options& x) {
  const bool here = x.cost_model_name == "measured", transformer = here || x.cost_model_name == "transformer";
  if (!transformer)
    if (auto given = x.transformer.given(); !given.empty())
      return make_error(errc::invalid_argument,
                        fmt::format("{} is of --cost-model transformer, not of {}", given, x.cost_model_name));
  if (here && x.transformer.told)
    return make_error(errc::invalid_argument,
                      "--system is of --cost-model transformer; measured is about this machine");
  return caf::none;
}

/// The cost model, and the model's layers; then whether the strategy can train it.
caf::error choose_costs(train_options& x, std::optional<uint32_t> layers) {
  const bool here = x.cost_model_name == "measured", transformer = here || x.cost_model_name == "transformer";
  auto trained = x.transformer.model(layers);
  if (!trained)
    return std::move(trained.error());
  x.trained.layers = transformer ? trained->layers : layers.value_or(x.trained.layers);
  if (auto problem = x.which->check(x.trained, x.ranks))
    return problem;
  if (auto problem = cut_option(x))
    return problem;
  for (auto* problem : {unused_option, too_large})
    if (auto found = problem(x))
      return found;
  if (!transformer) {
    x.costs = *cost_model_of(x.cost_model_name);
    return caf::none;
  }
  const auto shape = x.which->shape(x.trained, x.ranks);
  if (trained->heads % shape.tensor != 0)
    return make_error(errc::invalid_argument, fmt::format("{} heads do not divide among {} tensor-parallel ranks",
                                                          trained->heads, shape.tensor));
  parallel_setting how;
  how.shape = shape;
  how.again = x.transformer.again;
  how.sequence_parallel = x.trained.sequence_parallel;
  if (here) {
    configuration cfg;
    if (auto problem = cfg.read({}, "config/caf-application.conf"))
      return problem;
    auto memory_bandwidth =
      process_costs(cfg.values(), std::max(1u, std::thread::hardware_concurrency())).memory_bandwidth;
    x.own_costs = measured_costs(*trained, network_costs(cfg.values()), memory_bandwidth, how);
  } else {
    x.own_costs = transformer_costs(*trained, x.transformer.system, how);
  }
  x.costs = x.own_costs.get();
  return caf::none;
}

caf::expected<train_options> parse(std::span<const std::string> args, bool one_of_all = false) {
  train_options result;
  result.one_of_all = one_of_all;
  std::optional<uint32_t> layers;
  option_table table{"simulate train"};
  table.value("--strategy", [&](const std::string& text) -> caf::error {
    result.all = text == "all";
    auto which = result.all ? nullptr : parse_strategy(text);
    if (!which)
      return std::move(which.error());
    result.which = *which;
    return caf::none;
  });
  table.number("--ranks", result.ranks, 1, 65536);
  table.number("--layers", layers, 1, 65536);
  table.number("--global-batch", result.trained.global_batch, 1, batch_max);
  table.number("--micro-batch", result.micro_batch, 1, batch_max);
  table.number("--chunks", result.chunks, 1, 65536);
  table.number("--tensor", result.trained.tensor, 1, 65536);
  table.number("--data", result.trained.data, 1, 65536);
  table.flag("--sequence-parallel", result.trained.sequence_parallel);
  table.number("--zero", result.trained.zero, 0, 3);
  table.parsed("--cost-model", result.cost_model_name, parse_cost_model);
  result.transformer.add_to(table);
  table.flag("--json", result.json);
  table.text("--trace", result.trace);
  table.text("--svg", result.svg);
  if (auto problem = table.read({args.begin(), args.end()}))
    return problem;
  result.help = table.help();
  if (result.help)
    return result;
  result.trained.micro_batch = result.micro_batch.value_or(result.trained.micro_batch);
  result.trained.chunks = result.chunks.value_or(result.trained.chunks);
  if (result.all && !(result.trace.empty() && result.svg.empty()))
    return make_error(errc::invalid_argument, "--trace and --svg are of one strategy, not of all");
  if (auto problem = misplaced_option(result))
    return problem;
  if (result.all)
    return result;
  if (result.which == nullptr)
    return make_error(errc::invalid_argument, "--strategy is missing: say which, such as --strategy 1f1b");
  if (auto problem = choose_costs(result, layers))
    return problem;
  if (!result.svg.empty() && result.ranks > pictured_ranks_max)
    return make_error(errc::invalid_argument,
                      fmt::format("--svg: a picture has at most {} ranks, not {}: take fewer --ranks, or --trace",
                                  pictured_ranks_max, result.ranks));
  return result;
}

caf::expected<training_outcome> run(const train_options& x) {
  const bool with_events = !x.trace.empty() || !x.svg.empty();
  return simulate([&](rank& self) { return x.which->run(self, x.trained); }, x.trained, x.ranks, *x.costs, with_events);
}

train_run about(const train_options& x) {
  return {x.which->name, x.trained, x.ranks, x.costs, !x.micro_batch && x.which->cut != batch_cut::always};
}

/// All strategies with the same options, one after the other.
int compare(std::span<const std::string> args, bool json, std::FILE* out) {
  std::string text = json ? "[" : comparison_header();
  bool any = false;
  for (auto& which : strategies()) {
    std::vector<std::string> its{args.begin(), args.end()};
    its.insert(its.end(), {"--strategy", std::string{which.name}});
    auto opts = parse(its, true);
    auto found = opts ? run(*opts) : caf::expected<training_outcome>{opts.error()};
    any = any || found.engaged();
    if (json)
      text.append(text.size() == 1 ? "" : ",")
        .append(found ? json_of(about(*opts), *found)
                      : fmt::format(R"({{"strategy":"{}","error":{}}})", which.name, json_text(render(found.error()))));
    else
      text += found ? comparison_row(about(*opts), *found)
                    : fmt::format("| {} | {} |\n", which.name, render(found.error()));
  }
  fmt::print(out, "{}{}", text, json ? "]\n" : "");
  return any ? 0 : exit_failed;
}

/// The files that are asked for beside the report.
caf::error write_files(const train_options& opts, const train_run& what, const training_outcome& found) {
  if (!opts.trace.empty())
    if (auto problem = write_output_file(opts.trace, trace_of(found, *opts.costs), "the trace"))
      return problem;
  if (opts.svg.empty())
    return caf::none;
  auto picture = picture_of(what, found);
  return picture ? write_output_file(opts.svg, *picture, "the picture") : std::move(picture.error());
}

} // namespace

int train_command(std::span<const std::string> args, std::FILE* out, std::FILE* err) {
  auto failed = [&](const caf::error& problem, int code) {
    fmt::print(err, "ringmaster simulate train: {}\n", render(problem));
    return code;
  };
  auto opts = parse(args);
  if (!opts)
    return failed(opts.error(), exit_usage);
  if (opts->help) {
    fmt::print(out, fmt::runtime(train_help), known_strategies(), transformer_options{}.name);
    return 0;
  }
  if (opts->all)
    return compare(args, opts->json, out);
  auto found = run(*opts);
  if (!found)
    return failed(found.error(), exit_failed);
  if (auto problem = write_files(*opts, about(*opts), *found))
    return failed(problem, exit_failed);
  fmt::print(out, "{}", opts->json ? json_of(about(*opts), *found) : report_of(about(*opts), *found));
  if (!opts->trace.empty() && !opts->json)
    fmt::print(out, "Wrote {}: open it in ui.perfetto.dev or chrome://tracing.\n", opts->trace);
  if (!opts->svg.empty() && !opts->json)
    fmt::print(out, "Wrote {}.\n", opts->svg);
  return 0;
}

} // namespace ringmaster
