#include "tools/training/train_command.hpp"

#include "actors/configuration/configuration.hpp"
#include "actors/configuration/settings.hpp"
#include "messages/errc.hpp"
#include "runtime/configuration/places.hpp"
#include "runtime/text/json_writer.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/training/simulated/simulator.hpp"
#include "runtime/training/strategies/strategies.hpp"
#include "runtime/training/transformer/measured_costs.hpp"
#include "runtime/training/search/strategy_search.hpp"
#include "tools/options/nearest_word.hpp"
#include "tools/console/output_file.hpp"
#include "tools/console/progress.hpp"
#include "runtime/training/pictures/train_picture.hpp"
#include "runtime/training/pictures/train_trace.hpp"
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
constexpr uint64_t simulated_operations_max = 1'000'000'000;
constexpr uint64_t weights_max = 1 << 24; ///< Some ten gigabytes of handles.

struct train_options {
  const known_strategy* which = nullptr;
  training::model trained{.layers = 32, .global_batch = 32};
  uint32_t ranks = 8;
  std::string cost_model_name = "lab";
  const cost_model* costs = nullptr;
  std::shared_ptr<const cost_model> own_costs;
  std::optional<uint32_t> layers;
  transformer_options transformer;
  bool json = false;
  std::string trace;
  uint64_t trace_bytes_max = trace_bytes_usual;
  std::string svg;
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

std::vector<std::string> strategy_names() {
  std::vector<std::string> result;
  for (auto& x : strategies())
    result.emplace_back(x.name);
  result.emplace_back("all");
  return result;
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
caf::error choose_costs(train_options& x) {
  const bool here = x.cost_model_name == "measured", transformer = here || x.cost_model_name == "transformer";
  auto trained = x.transformer.model(x.layers);
  if (!trained)
    return std::move(trained.error());
  x.trained.layers = transformer ? trained->layers : x.layers.value_or(x.trained.layers);
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
    if (auto problem = cfg.read({}, find_configuration()))
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

/// That of one strategy, and all that a run of it wants.
caf::error check_one(train_options& x) {
  if (auto problem = choose_costs(x))
    return problem;
  if (!x.svg.empty() && x.ranks > pictured_ranks_max)
    return make_error(errc::invalid_argument,
                      fmt::format("--svg: a picture has at most {} ranks, not {}: take fewer --ranks, or --trace",
                                  pictured_ranks_max, x.ranks));
  return caf::none;
}

/// `watch` is told which part of it is done.
caf::expected<training_outcome> simulated(const train_options& x, const std::function<void(double part)>& watch) {
  const bool with_events = !x.trace.empty() || !x.svg.empty();
  const auto expected = static_cast<double>(operations_expected(*x.which, x.trained, x.ranks));
  return simulate([&](rank& self) { return x.which->run(self, x.trained); }, x.trained, x.ranks, *x.costs, with_events,
                  simulated_operations_max,
                  [&](uint64_t operations) { watch(static_cast<double>(operations) / expected); });
}

train_run about(const train_options& x) {
  return {x.which->name, x.trained, x.ranks, x.costs, !x.micro_batch && x.which->cut != batch_cut::always};
}

/// All strategies with the same options, one after the other.
int compare(const train_options& opts, std::FILE* out) {
  if (!opts.json)
    fmt::print(out, "{}", comparison_header());
  json_writer json, one;
  json.list();
  bool any = false;
  progress shown{"simulate train"};
  const auto whole = static_cast<double>(strategies().size());
  double done = 0;
  for (auto& which : strategies()) {
    auto its = opts;
    its.which = &which;
    its.one_of_all = true;
    auto problem = check_one(its);
    auto found = problem ? caf::expected<training_outcome>{std::move(problem)}
                         : simulated(its, [&](double part) { shown.at((done + part) / whole); });
    ++done;
    any = any || found.engaged();
    if (opts.json && found) {
      write_json(one, about(its), *found);
      json.literal(one.take() + "\n");
    } else if (opts.json)
      json.object().member("strategy", which.name).member("error", render(found.error())).end();
    else
      shown.print(out, found ? comparison_row(about(its), *found)
                             : fmt::format("| {} | {} |\n", which.name, render(found.error())));
  }
  if (opts.json)
    fmt::print(out, "{}\n", json.end().take());
  return any ? exit_ok : exit_failed;
}

/// The files that are asked for beside the report.
caf::error write_files(const train_options& opts, const training_outcome& found) {
  if (!opts.trace.empty()) {
    auto trace = trace_of(found, *opts.costs, opts.trace_bytes_max);
    if (!trace)
      return make_error(code_of(trace.error()), "--trace-limit: " + render(trace.error()));
    if (auto problem = write_output_file(opts.trace, *trace, "the trace"))
      return problem;
  }
  if (opts.svg.empty())
    return caf::none;
  auto picture = picture_of(about(opts), found);
  return picture ? write_output_file(opts.svg, *picture, "the picture") : std::move(picture.error());
}

void add_strategy_options(option_table& table, train_options& x) {
  table.value("--strategy",
              [&x](const std::string& text) -> caf::error {
                x.all = text == "all";
                auto which = x.all ? nullptr : parse_strategy(text);
                if (!which)
                  return std::move(which.error());
                x.which = *which;
                return caf::none;
              })
    .says("S", "one of these, or all: a table of them, each with those of --micro-batch and --chunks that it takes")
    .offers(strategy_names())
    .needed();
  table.number("--ranks", x.ranks, 1, 65536).says("N", "1 to 65536");
  table.number("--layers", x.layers, 1, 65536).says("L", "1 to 65536").otherwise("32; the model's");
  table.number("--global-batch", x.trained.global_batch, 1, batch_max).says("B", "samples of a step, of all ranks");
  table.number("--micro-batch", x.micro_batch, 1, batch_max)
    .says("B", "samples that a rank works on at once")
    .otherwise("1; ddp, wsdp, zero1, zero2, zero3: all that it has");
  table.number("--chunks", x.chunks, 1, 65536)
    .otherwise(std::to_string(training::model{}.chunks))
    .says("V", "parts of the model that a rank has in interleaved pipelines; layers of a bucket of ddp-overlap");
  table.number("--tensor", x.trained.tensor, 1, 65536)
    .says("T", "ranks that share each layer, in tensor, 3d and pipelines")
    .otherwise("as the strategy likes, 1 in pipelines");
  table.number("--data", x.trained.data, 1, 65536)
    .says("D", "ranks, or groups of them, that have other samples; the rest are a pipeline's stages")
    .otherwise("the same");
  table.flag("--sequence-parallel", x.trained.sequence_parallel)
    .says("between layers, tensor-parallel ranks share the positions");
  table.number("--zero", x.trained.zero, 0, 3)
    .says("Z", "what of a pipeline's stage its data-parallel ranks share, as ZeRO's stages 1 to 3 do");
}

class train_call final : public command_call {
  void declare(option_table& table) override {
    auto& x = opts_;
    table.about("Runs a step of training in virtual time: a strategy's program on every rank, under a published cost "
                "model. Prints time, memory, MFU, and what each rank did. The strategies:\n\n"
                + known_strategies());
    add_strategy_options(table, x);
    table.parsed("--cost-model", x.cost_model_name, parse_cost_model)
      .says("M", "lab: seconds, on a GPU of 1000 TFLOP/s; puzzles: Sasha Rush's abstract units; transformer: a GPT on a "
                 "system, seconds and bytes; measured: on hosts like this one, a rank each, with the collectives' costs "
                 "that `ringmaster tune` wrote into the configuration")
      .offers({"lab", "puzzles", "transformer", "measured"})
      .otherwise("lab");
    table.flag("--json", x.json).says("one object instead of the text");
    table.file("--trace", x.trace)
      .says("FILE", "a trace for ui.perfetto.dev or chrome://tracing: a track a rank, and its memory; one unit of the "
                    "puzzles' time is a millisecond there");
    table.bytes("--trace-limit", x.trace_bytes_max).says("SIZE", "how large a trace may be");
    table.file("--svg", x.svg)
      .says("FILE", fmt::format("a picture of the schedule as papers draw it: a row a rank, a box for each micro-batch's "
                                "forward and backward, and the rank's memory; of at most {} ranks",
                                pictured_ranks_max));
    table.begin_group("Of the cost models transformer and measured:");
    x.transformer.add_to(table);
    table.closing(
      "Time is reported as the published laboratories do, to the start of the last event; the end is given, too.");
    table.add_example("ringmaster simulate train --strategy 1f1b --ranks 4 --svg 1f1b.svg", "a pipeline and its picture");
  }

  caf::error check() override {
    opts_.trained.micro_batch = opts_.micro_batch.value_or(opts_.trained.micro_batch);
    opts_.trained.chunks = opts_.chunks.value_or(opts_.trained.chunks);
    if (opts_.all && !(opts_.trace.empty() && opts_.svg.empty()))
      return make_error(errc::invalid_argument, "--trace and --svg are of one strategy, not of all");
    if (auto problem = misplaced_option(opts_))
      return problem;
    if (opts_.all)
      return caf::none;
    if (opts_.which == nullptr)
      return make_error(errc::invalid_argument, "--strategy is missing: say which, such as --strategy 1f1b");
    return check_one(opts_);
  }

  caf::expected<int> run(const console& to) override {
    if (opts_.all)
      return compare(opts_, to.out);
    auto found = simulated_alone();
    if (!found)
      return std::move(found.error());
    if (auto problem = write_files(opts_, *found))
      return problem;
    if (opts_.json) {
      json_writer json;
      write_json(json, about(opts_), *found);
      fmt::print(to.out, "{}\n", json.take());
      return exit_ok;
    }
    fmt::print(to.out, "{}", report_of(about(opts_), *found));
    if (!opts_.trace.empty())
      fmt::print(to.out, "Wrote {}: open it in ui.perfetto.dev or chrome://tracing.\n", opts_.trace);
    if (!opts_.svg.empty())
      fmt::print(to.out, "Wrote {}.\n", opts_.svg);
    return exit_ok;
  }

  caf::expected<training_outcome> simulated_alone() const {
    progress shown{"simulate train"};
    return simulated(opts_, [&](double part) { shown.at(part); });
  }

  train_options opts_;
};

} // namespace

tool_command train_command() {
  return tool_command::of<train_call>("simulate train", "a step of training in virtual time");
}

} // namespace ringmaster
