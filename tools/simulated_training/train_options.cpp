#include "tools/simulated_training/train_options.hpp"

#include "actors/configuration/configuration.hpp"
#include "actors/configuration/settings.hpp"
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "planner/costs/transformer_costs.hpp"
#include "runtime/configuration/places.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/console/output_file.hpp"
#include "tools/options/trace_limit.hpp"
#include "training/pictures/train_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace ringmaster {

namespace {

using namespace training;

constexpr uint64_t micro_batches_max = 1 << 20;
constexpr uint64_t weights_max = 1 << 24; ///< Some ten gigabytes of handles.

std::string known_costs() {
  std::string result;
  for (auto& x : known_cost_models())
    result += fmt::format("{}{}: {}", result.empty() ? "" : "; ", x.name, x.what);
  return result;
}

/// Of which some cost models say nothing.
std::string_view text_of(beyond x) {
  return x == beyond::groups      ? "groups of data-parallel ranks"
         : x == beyond::positions ? "attention and its keys"
                                  : "layers of experts";
}

/// What one process can hold.
caf::error too_large(const train_options& x) {
  const auto shape = x.which->shape(x.trained, x.ranks);
  const auto weights = uint64_t{x.ranks} * (x.trained.layers / shape.pipeline + 1);
  if (weights > weights_max)
    return invalid(fmt::format("{} ranks would hold some {} layers' weights, more than can be simulated, {}", x.ranks,
                               weights, weights_max));
  if (auto count = micro_batch_count(x.trained, shape.data); count > micro_batches_max)
    return invalid(fmt::format("{} micro-batches are more than can be simulated, {}: take a larger --micro-batch",
                               count, micro_batches_max));
  return caf::none;
}

/// Options of another cost model.
caf::error misplaced_option(const train_options& x) {
  const bool here = x.cost_kind->of_this_machine, transformer = x.cost_kind->laboratory == nullptr;
  if (!transformer)
    if (auto given = x.transformer.given(); !given.empty())
      return invalid(fmt::format("{} is of --cost-model transformer, not of {}", given, x.cost_kind->name));
  if (here && x.transformer.told)
    return invalid("--system is of --cost-model transformer; measured is about this machine");
  return caf::none;
}

/// Whether the model's sides divide among the strategy's. Errors: invalid_argument, with the option.
caf::error check_divided(const language_model& trained, const training_setting& how) {
  if (trained.heads % how.tp != 0)
    return invalid(fmt::format("--tensor: {} does not divide the {} attention heads", how.tp, trained.heads));
  if (how.ep > 1 && trained.experts.count == 0)
    return invalid(fmt::format("the model has no experts that {} ranks could share: qwen3-30b-a3b and others have",
                               how.ep));
  if (trained.experts.count % how.ep != 0)
    return invalid(fmt::format("--experts: {} does not divide the {} experts of a layer", how.ep,
                               trained.experts.count));
  if (how.ep > 1 && trained.experts.every > 1)
    return invalid(fmt::format("experts are in every {}th layer, and strategies take positions to experts in all of "
                               "them; `plan` knows such models",
                               trained.experts.every));
  if (how.cp > 1 && trained.sequence % (2 * how.cp) != 0)
    return invalid(
      fmt::format("--context: {} does not divide the sequence of {} positions, of which each of {} ranks has two parts",
                  2 * how.cp, trained.sequence, how.cp));
  const bool shares_positions = how.sequence_parallel || how.ep > 1;
  if (const auto own = trained.sequence / how.cp; shares_positions && own % how.tp != 0)
    return invalid(fmt::format("--tensor: {} does not divide the {} of {} positions that a rank has", how.tp, own,
                               trained.sequence));
  return caf::none;
}

/// How the strategy has a transformer trained.
caf::expected<training_setting> setting_of(const train_options& x, const language_model& trained,
                                           const std::vector<beyond>& needs) {
  auto has = [&](beyond need) { return std::ranges::find(needs, need) != needs.end(); };
  training_setting how;
  static_cast<parallel_setting&>(how) = x.trained.parallel;
  how.set_degrees(x.which->shape(x.trained, x.ranks));
  how.ep = has(beyond::experts) ? expert_ranks(x.trained, x.ranks) : 1;
  how.again = x.transformer.again;
  how.computed_in = x.transformer.computed_in;
  how.attention = x.transformer.attention;
  how.counted = x.transformer.counted;
  how.global_batch = static_cast<uint32_t>(x.trained.global_batch);
  how.micro_batch = static_cast<uint32_t>(x.trained.micro_batch);
  how.schedule = schedule_of(x.which->name);
  if (x.which->chunks == training::chunk_use::parts && how.chunks > 1)
    how.schedule = pipeline_schedule::interleaved_1f1b;
  const bool has_sides = x.which->shares == sharing::stages; // as `plan` has them, also if some are 1
  how.as_simulated = how.pp == 1 && how.tp == 1 && !has_sides;
  how.overlapped = x.which->prefetches || (!how.as_simulated && how.zero <= 1); // as `plan` has it
  how.shard_ranks = how.as_simulated && !x.which->keeps_sums ? how.dp : 0;
  RETURN_ERROR(check_divided(trained, how));
  return how;
}

/// Whether the strategy can train this number of layers, or, where it has stages, with embedding and logits as two
/// more: x then has their number.
caf::error check_layers(train_options& x, bool transformer) {
  const auto problem = x.which->check(x.trained, x.ranks);
  if (!problem || !transformer || x.which->shares != sharing::stages)
    return problem;
  x.trained.layers += 2;
  return x.which->check(x.trained, x.ranks) ? problem : caf::none;
}

/// The cost model, and the model's layers; then whether the strategy can train it.
caf::error choose_costs(train_options& x) {
  const bool here = x.cost_kind->of_this_machine, transformer = x.cost_kind->laboratory == nullptr;
  TRY(trained, x.transformer.model(x.layers));
  x.trained.layers = transformer ? trained->layers : x.layers.value_or(x.trained.layers);
  x.places_beside = 0;
  RETURN_ERROR(check_layers(x, transformer));
  RETURN_ERROR(x.choose());
  RETURN_ERROR(too_large(x));
  if (!transformer) {
    x.costs = &x.cost_kind->laboratory();
    return caf::none;
  }
  const auto needs = here ? std::vector<beyond>{} : needs_of(*x.which, x.trained);
  TRY(how, setting_of(x, *trained, needs));
  x.trained.blocks = how->again != recomputation::full; // as Megatron-LM has it
  const auto places = places_of(*trained, *how, needs);
  x.places_beside = places.count() - trained->layers;
  x.trained.layers = places.count();
  if (x.places_beside > 0)
    x.trained.dense_first = places.dense_first();
  RETURN_ERROR(x.which->check(x.trained, x.ranks));
  if (here) {
    configuration cfg;
    RETURN_ERROR(cfg.read({}, find_configuration()));
    auto memory_bandwidth
      = process_costs(cfg.values(), std::max(1u, std::thread::hardware_concurrency())).memory_bandwidth;
    x.own_costs = measured_costs(*trained, network_costs(cfg.values()), memory_bandwidth, *how);
  } else {
    x.own_costs = transformer_costs(*trained, x.transformer.system, *how, needs);
  }
  x.costs = x.own_costs.get();
  return caf::none;
}

} // namespace

void train_options::add_to(option_table& table) {
  table.about("Runs a step of training in virtual time: a strategy's program on every rank, under a published cost "
              "model. Prints time, memory, MFU, and what each rank did. The strategies:\n\n"
              + known_strategies());
  strategy_options::add_to(table, 65536);
  table.option_named("--strategy")
    .says("S", "one of these, or all: a table of them, each with those of --micro-batch and --chunks that it takes; "
               "with a --micro-batch ddp and ddp-accumulate are the same, but for where the sums are reduced");
  table.number("--layers", layers, 1, 65536).says("L", "1 to 65536").otherwise("32; the model's");
  table.parsed("--cost-model", cost_kind, parse_cost_model)
    .says("M", known_costs())
    .offers(cost_model_names(false))
    .otherwise(std::string{cost_kind->name});
  table.flag("--json", json).says("one object instead of the text");
  table.flag("--wide", wide).says("the table of all strategies shows all of its columns, however long its lines are");
  table.file("--trace", trace)
    .says("FILE", "a trace for ui.perfetto.dev or chrome://tracing: a track a rank, and its memory; one unit of the "
                  "puzzles' time is a millisecond there");
  add_trace_limit(table, trace_bytes_max)
    .says("SIZE", "how large a trace may be, at least 64K")
    .otherwise(size_text(trace_bytes_usual));
  table.file("--svg", svg)
    .says("FILE", fmt::format("a picture of the schedule as papers draw it: a row a rank, a box for each micro-batch's "
                              "forward and backward, and the rank's memory; of at most {} ranks",
                              pictured_ranks_max));
  table.begin_group("Of the cost models transformer and measured:");
  transformer.add_to(table);
  table.closing(
    "Time is reported as the published laboratories do, to the start of the last event; the end is given, too.");
  table.common({"--strategy", "--ranks", "--global-batch", "--micro-batch", "--layers", "--model", "--system", "--json",
                "--trace", "--svg"});
  table.add_example("ringmaster simulate train --strategy 1f1b --ranks 4 --svg 1f1b.svg", "a pipeline and its picture");
}

caf::error train_options::check_one() {
  trained.parallel.chunks = chunks.value_or(which->usual_chunks);
  RETURN_ERROR(choose_costs(*this));
  for (auto needs : needs_of(*which, trained))
    if (!costs->knows(needs))
      return invalid(fmt::format("{}: the cost model {} does not say what {} take, lab does", which->name,
                                 costs->name(), text_of(needs)));
  if (!svg.empty() && ranks > pictured_ranks_max)
    return invalid(fmt::format("--svg: a picture has at most {} ranks, not {}: take fewer --ranks, or --trace",
                               pictured_ranks_max, ranks));
  return caf::none;
}

caf::error train_options::check() {
  trained.micro_batch = micro_batch.value_or(trained.micro_batch);
  if (all && !(trace.empty() && svg.empty()))
    return invalid("--trace and --svg are of one strategy, not of all");
  if (trace.empty() && trace_bytes_max)
    return invalid("--trace-limit says how large a --trace may be, and there is none");
  RETURN_ERROR(check_outputs_differ({{"--trace", trace}, {"--svg", svg}}));
  RETURN_ERROR(misplaced_option(*this));
  if (all)
    return caf::none;
  if (which == nullptr)
    return invalid("--strategy is missing: say which, such as --strategy 1f1b");
  return check_one();
}

} // namespace ringmaster
