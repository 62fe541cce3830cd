#include "tools/simulated_training/strategy_options.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/text/comma_list.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringmaster {

using namespace training;

std::string known_strategies() {
  std::string result;
  for (auto& x : strategies())
    result += fmt::format("  {:<19} {}\n", x.name, x.what);
  return result;
}

namespace {

constexpr uint64_t batch_max = 1 << 30; ///< Samples: with 65536 layers of the lab's, memory still is below 2^63.

caf::expected<const known_strategy*> parse_strategy(const std::string& text) {
  if (auto* found = strategy_of(text))
    return found;
  std::vector<std::string> names;
  for (auto& x : strategies())
    names.emplace_back(x.name);
  const auto near = nearest_word(text, names);
  return invalid(fmt::format("there is no strategy \"{}\"{}: {}", text,
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

/// Of a rank's samples; those beside the number told that would.
caf::error check_divides(const strategy_options& x, uint64_t micro_batch) {
  const auto samples = x.trained.global_batch / x.which->shape(x.trained, x.ranks).data;
  if (samples % micro_batch == 0)
    return caf::none;
  auto below = std::min(micro_batch, samples), above = micro_batch;
  while (samples % below != 0)
    --below;
  while (above < samples && samples % above != 0)
    ++above;
  const auto right = above > samples || above == below ? fmt::to_string(below) : fmt::format("{} or {}", below, above);
  return invalid(fmt::format("--micro-batch {}: {} on {} has {} on each rank; {} would divide them", micro_batch,
                             x.which->name, counted(x.ranks, "rank"), counted(samples, "sample"), right));
}

/// A line of the table is run without what its strategy does not take; the table says so.
template <class Value>
void leave_out(strategy_options& x, std::optional<Value>& option, bool taken, const char* name) {
  if (option && !taken)
    x.left_out.emplace_back(name);
  if (!taken)
    option.reset();
}

template <class Condition>
std::vector<std::string_view> those_that(Condition holds) {
  std::vector<std::string_view> names;
  for (auto& x : strategies())
    if (holds(x))
      names.push_back(x.name);
  return names;
}

/// "fsdp and hsdp".
std::string listed(std::vector<std::string_view> names) {
  if (names.size() < 2)
    return names.empty() ? "none" : std::string{names.front()};
  const auto last = names.back();
  names.pop_back();
  return fmt::format("{} and {}", fmt::join(names, ", "), last);
}

/// With the verb in singular or plural.
std::string listed(const std::vector<std::string_view>& names, std::string_view one_does, std::string_view they_do) {
  return fmt::format("{} {}", listed(names), names.size() == 1 ? one_does : they_do);
}

bool gathers_ahead(const known_strategy& x) {
  return x.prefetches;
}

bool shards_in_groups(const known_strategy& x) {
  return x.shards_in_groups;
}

bool shares_positions(const known_strategy& x) {
  return x.needs == beyond::positions || x.shares_positions;
}

bool has_experts(const known_strategy& x) {
  return x.needs == beyond::experts || x.shares_experts;
}

/// Defaults of --micro-batch and --chunks, and errors for values that the strategy cannot have. With --strategy all an
/// option applies to the strategies that have it.
caf::error cut_option(strategy_options& x) {
  auto& m = x.trained;
  const bool cuts = x.which->cut != batch_cut::never;
  const bool takes_chunks = x.which->chunks == chunk_use::parts || x.which->chunks == chunk_use::buckets;
  if (x.one_of_all) {
    leave_out(x, x.micro_batch, cuts, "--micro-batch");
    leave_out(x, x.chunks, takes_chunks, "--chunks");
    leave_out(x, x.prefetch, x.which->prefetches, "--prefetch");
  }
  auto refused = [&](std::string_view option, std::string why) {
    return invalid(fmt::format("{}: {} on {} {}", option, x.which->name, counted(x.ranks, "rank"), why));
  };
  m.micro_batch = default_micro_batch(*x.which, m, x.ranks);
  if (!cuts && x.micro_batch.value_or(m.micro_batch) != m.micro_batch)
    return refused("--micro-batch", fmt::format("works on all {} samples of a rank at once", m.micro_batch));
  m.micro_batch = x.micro_batch.value_or(m.micro_batch);
  if (cuts && x.micro_batch && !m.uneven)
    RETURN_ERROR(check_divides(x, *x.micro_batch));
  m.prefetch = x.prefetch.value_or(training::model{}.prefetch);
  m.parallel.chunks = x.chunks.value_or(x.which->usual_chunks);
  const auto chunks = chunks_of(*x.which, m);
  if (x.chunks && !takes_chunks && *x.chunks != chunks)
    return refused("--chunks", fmt::format("has {} of the model on each", chunks == 1 ? "one part" : "two parts"));
  return caf::none;
}

/// Errors for options that this strategy ignores.
caf::error unused_option(const strategy_options& x) {
  auto& m = x.trained;
  const auto shape = x.which->shape(m, x.ranks);
  auto refused = [&](std::string_view option, std::string why) {
    return invalid(fmt::format("{}: {} on {} {}", option, x.which->name, counted(x.ranks, "rank"), why));
  };
  if (m.parallel.tp != 0 && m.parallel.tp != shape.tensor)
    return refused("--tensor", shape.tensor == 1 ? "has no tensor-parallel ones"
                                                 : fmt::format("has {} tensor-parallel ones", shape.tensor));
  if (m.parallel.dp != 0 && m.parallel.dp != shape.data)
    return refused(x.data_option, shape.data == 1 ? "has no data-parallel ones"
                                                  : fmt::format("has {} data-parallel ones", shape.data));
  if (x.prefetch && !x.which->prefetches)
    return refused("--prefetch", "gathers nothing ahead: " + listed(those_that(gathers_ahead), "does", "do"));
  if (m.parallel.shard_ranks != 0 && !x.which->shards_in_groups)
    return refused("--shard",
                   "has no groups that share the model: " + listed(those_that(shards_in_groups), "has", "have"));
  if (m.parallel.cp != 0 && !shares_positions(*x.which))
    return refused("--context", "has none that share the positions of samples: "
                                  + listed(those_that(shares_positions), "has", "have"));
  if (m.parallel.ep != 0 && !has_experts(*x.which))
    return refused("--experts", "has no layers of experts: " + listed(those_that(has_experts), "has", "have"));
  if (m.virtual_ranks != 0 && !x.which->orders_parts)
    return refused("--virtual-ranks",
                   "adds in an order that depends on its ranks: "
                     + listed(those_that([](auto& y) { return y.orders_parts; }), "does not", "do not"));
  if (m.parallel.sequence_parallel && shape.tensor == 1)
    return refused("--sequence-parallel", "has no tensor-parallel ones that could share the positions");
  if (m.parallel.sequence_parallel && x.which->by_columns)
    return refused("--sequence-parallel", "gathers whole samples, and has columns of them before");
  if (m.parallel.zero > 0 && x.which->shares != sharing::stages)
    return refused("--zero",
                   "has no stages; --zero is of pipelines, the strategies zero1, zero2 and zero3 are by themselves");
  const bool shares_experts = m.parallel.ep > 1 && shape.stage_size() > m.parallel.ep;
  if (m.parallel.zero > 0 && shape.data * shape.context == 1 && !shares_experts)
    return refused("--zero", fmt::format("has no data-parallel ones that could share a stage: give {}", x.data_option));
  if (m.parallel.zero > 0 && m.parallel.zero < 3 && x.which->gathers == sharded::a_stage)
    return refused("--zero", "shares a stage as ZeRO's stage 3 does");
  return caf::none;
}

} // namespace

void strategy_options::add_to(option_table& table, uint32_t ranks_max) {
  table
    .value("--strategy",
           [this](const std::string& text) -> caf::error {
             all = text == "all";
             TRY(found, all ? nullptr : parse_strategy(text));
             which = *found;
             return caf::none;
           })
    .offers(strategy_names())
    .needed();
  table.number("--ranks", ranks, 1, ranks_max).says("N", fmt::format("1 to {}", ranks_max));
  table.number("--global-batch", trained.global_batch, 1, batch_max).says("B", "samples of a step, of all ranks");
  table.number("--micro-batch", micro_batch, 1, batch_max)
    .says("B", "samples that a rank works on at once")
    .otherwise("1; ddp, wsdp, fsdp, hsdp and the ZeROs: all that it has");
  table.number("--chunks", chunks, 1, 65536)
    .otherwise(std::to_string(training::model{}.parallel.chunks))
    .says("V", "parts of the model that a rank has in interleaved pipelines, and in 3d, where the default is 1; "
               "layers of a bucket of ddp-overlap and zero1-overlap");
  table.number("--tensor", trained.parallel.tp, 1, 65536)
    .says("T", "ranks that share each layer, in tensor, tensor-naive, 3d and pipelines")
    .otherwise("as the strategy likes, 1 in pipelines");
  table.number(data_option, trained.parallel.dp, 1, 65536)
    .says("D", "ranks, or groups of them, that have other samples; the rest are a pipeline's stages")
    .otherwise("the same");
  table.number("--virtual-ranks", trained.virtual_ranks, 1, 65536)
    .says("V", "parts of the global batch whose gradients ddp-ordered adds in their order")
    .otherwise("one for each rank");
  table.number("--prefetch", prefetch, 0, 65536)
    .says("N", "layers gathered before they are needed, in " + listed(those_that(gathers_ahead)) + "; 0: none")
    .otherwise(std::to_string(training::model{}.prefetch));
  table.number("--shard", trained.parallel.shard_ranks, 1, 65536)
    .says("S", "neighbours that share the model, in " + listed(those_that(shards_in_groups)))
    .otherwise("8, or half of the ranks");
  table.number("--context", trained.parallel.cp, 1, position_run::of_max)
    .says("C", "neighbours that share the positions of samples, in " + listed(those_that(shares_positions)))
    .otherwise(fmt::format("all that {} leaves; in 3d none", data_option));
  table.number("--experts", trained.parallel.ep, 1, 65536)
    .says("E", "neighbours that share the experts of every second layer, in " + listed(those_that(has_experts)))
    .otherwise("8, or what of them divides the ranks; in dualpipe and 3d there are none");
  table.flag("--sequence-parallel", trained.parallel.sequence_parallel)
    .says("between layers, tensor-parallel ranks share the positions");
  table.number("--zero", trained.parallel.zero, 0, 3)
    .says("Z", "what of a pipeline's stage its data-parallel ranks share, as ZeRO's stages 1 to 3 do");
}

caf::error strategy_options::choose() {
  RETURN_ERROR(cut_option(*this));
  return unused_option(*this);
}

} // namespace ringmaster
