#include "tools/training/train_options.hpp"

#include "actors/configuration/configuration.hpp"
#include "actors/configuration/settings.hpp"
#include "messages/errc.hpp"
#include "runtime/configuration/places.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/training/pictures/train_picture.hpp"
#include "runtime/training/transformer/measured_costs.hpp"
#include "tools/options/nearest_word.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <thread>

namespace ringmaster {

namespace {

using namespace training;

constexpr uint64_t batch_max = 1 << 30; ///< Samples: with 65536 layers of the lab's, memory still is below 2^63.
constexpr uint64_t micro_batches_max = 1 << 20;
constexpr uint64_t weights_max = 1 << 24; ///< Some ten gigabytes of handles.

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

std::string known_costs() {
  std::string result;
  for (auto& x : known_cost_models())
    result += fmt::format("{}{}: {}", result.empty() ? "" : "; ", x.name, x.what);
  return result;
}

/// Of a rank's samples; those beside the number told that would.
caf::error check_divides(const train_options& x, uint64_t micro_batch) {
  const auto samples = x.trained.global_batch / x.which->shape(x.trained, x.ranks).data;
  if (samples % micro_batch == 0)
    return caf::none;
  auto below = std::min(micro_batch, samples), above = micro_batch;
  while (samples % below != 0)
    --below;
  while (above < samples && samples % above != 0)
    ++above;
  const auto right = above > samples || above == below ? fmt::to_string(below) : fmt::format("{} or {}", below, above);
  return make_error(errc::invalid_argument,
                    fmt::format("--micro-batch {}: {} on {} has {} on each rank; {} would divide them", micro_batch,
                                x.which->name, counted(x.ranks, "rank"), counted(samples, "sample"), right));
}

/// --micro-batch and --chunks as this strategy has them, where they are not told; and where it has others than are
/// told. What is told to all of them is for those that take it.
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
                      fmt::format("{}: {} on {} {}", option, x.which->name, counted(x.ranks, "rank"), why));
  };
  m.micro_batch = default_micro_batch(*x.which, m, x.ranks);
  if (!cuts && x.micro_batch.value_or(m.micro_batch) != m.micro_batch)
    return refused("--micro-batch", fmt::format("works on all {} samples of a rank at once", m.micro_batch));
  m.micro_batch = x.micro_batch.value_or(m.micro_batch);
  if (cuts && x.micro_batch)
    if (auto problem = check_divides(x, *x.micro_batch))
      return problem;
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
                      fmt::format("{}: {} on {} {}", option, x.which->name, counted(x.ranks, "rank"), why));
  };
  if (m.tensor != 0 && m.tensor != shape.tensor)
    return refused("--tensor", shape.tensor == 1 ? "has no tensor-parallel ones"
                                                 : fmt::format("has {} tensor-parallel ones", shape.tensor));
  if (m.data != 0 && m.data != shape.data)
    return refused("--data", shape.data == 1 ? "has no data-parallel ones"
                                             : fmt::format("has {} data-parallel ones", shape.data));
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
  const bool here = x.cost_kind->of_this_machine, transformer = x.cost_kind->laboratory == nullptr;
  if (!transformer)
    if (auto given = x.transformer.given(); !given.empty())
      return make_error(errc::invalid_argument,
                        fmt::format("{} is of --cost-model transformer, not of {}", given, x.cost_kind->name));
  if (here && x.transformer.told)
    return make_error(errc::invalid_argument,
                      "--system is of --cost-model transformer; measured is about this machine");
  return caf::none;
}

/// The cost model, and the model's layers; then whether the strategy can train it.
caf::error choose_costs(train_options& x) {
  const bool here = x.cost_kind->of_this_machine, transformer = x.cost_kind->laboratory == nullptr;
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
    x.costs = &x.cost_kind->laboratory();
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
    auto memory_bandwidth
      = process_costs(cfg.values(), std::max(1u, std::thread::hardware_concurrency())).memory_bandwidth;
    x.own_costs = measured_costs(*trained, network_costs(cfg.values()), memory_bandwidth, how);
  } else {
    x.own_costs = transformer_costs(*trained, x.transformer.system, how);
  }
  x.costs = x.own_costs.get();
  return caf::none;
}

void add_strategy_options(option_table& table, train_options& x) {
  table
    .value("--strategy",
           [&x](const std::string& text) -> caf::error {
             x.all = text == "all";
             auto which = x.all ? nullptr : parse_strategy(text);
             if (!which)
               return std::move(which.error());
             x.which = *which;
             return caf::none;
           })
    .says("S",
          "one of these, or all: a table of them, each with those of --micro-batch and --chunks that it takes; with a "
          "--micro-batch ddp and ddp-accumulate are the same, but for where the sums are reduced")
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

} // namespace

void train_options::add_to(option_table& table) {
  table.about("Runs a step of training in virtual time: a strategy's program on every rank, under a published cost "
              "model. Prints time, memory, MFU, and what each rank did. The strategies:\n\n"
              + known_strategies());
  add_strategy_options(table, *this);
  table.parsed("--cost-model", cost_kind, parse_cost_model)
    .says("M", known_costs())
    .offers(cost_model_names(false))
    .otherwise(std::string{cost_kind->name});
  table.flag("--json", json).says("one object instead of the text");
  table.file("--trace", trace)
    .says("FILE", "a trace for ui.perfetto.dev or chrome://tracing: a track a rank, and its memory; one unit of the "
                  "puzzles' time is a millisecond there");
  table.bytes("--trace-limit", trace_bytes_max)
    .says("SIZE", "how large a trace may be")
    .otherwise(size_text(trace_bytes_usual));
  table.file("--svg", svg)
    .says("FILE", fmt::format("a picture of the schedule as papers draw it: a row a rank, a box for each micro-batch's "
                              "forward and backward, and the rank's memory; of at most {} ranks",
                              pictured_ranks_max));
  table.begin_group("Of the cost models transformer and measured:");
  transformer.add_to(table);
  table.closing(
    "Time is reported as the published laboratories do, to the start of the last event; the end is given, too.");
  table.add_example("ringmaster simulate train --strategy 1f1b --ranks 4 --svg 1f1b.svg", "a pipeline and its picture");
}

caf::error train_options::check_one() {
  if (auto problem = choose_costs(*this))
    return problem;
  if (!svg.empty() && ranks > pictured_ranks_max)
    return make_error(errc::invalid_argument,
                      fmt::format("--svg: a picture has at most {} ranks, not {}: take fewer --ranks, or --trace",
                                  pictured_ranks_max, ranks));
  return caf::none;
}

caf::error train_options::check() {
  trained.micro_batch = micro_batch.value_or(trained.micro_batch);
  trained.chunks = chunks.value_or(trained.chunks);
  if (all && !(trace.empty() && svg.empty()))
    return make_error(errc::invalid_argument, "--trace and --svg are of one strategy, not of all");
  if (trace.empty() && trace_bytes_max)
    return make_error(errc::invalid_argument, "--trace-limit says how large a --trace may be, and there is none");
  if (auto problem = misplaced_option(*this))
    return problem;
  if (all)
    return caf::none;
  if (which == nullptr)
    return make_error(errc::invalid_argument, "--strategy is missing: say which, such as --strategy 1f1b");
  return check_one();
}

} // namespace ringmaster
