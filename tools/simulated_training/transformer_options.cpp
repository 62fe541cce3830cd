#include "tools/simulated_training/transformer_options.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "planner/models/model_families.hpp"
#include "planner/systems/pretraining_software.hpp"
#include "runtime/text/quantity_parse.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ringmaster {

using namespace training;

namespace {

caf::expected<double> parse_factor(const std::string& text) {
  const auto x = decimal_in(text);
  if (!x || !(*x > 0) || *x > 65536)
    return invalid(fmt::format("\"{}\" is no factor above 0, such as 1.25", text));
  return *x;
}

caf::expected<std::string> parse_family(const std::string& text) {
  if (model_family_of(text) != nullptr)
    return text;
  return unknown_model_family(text);
}

/// Whether its sizes are those of a GPT of its hidden size and heads.
bool is_gpt(const language_model& x) {
  auto gpt = gpt_shape(x.name, x.hidden, x.heads, x.layers, x.sequence, x.vocabulary);
  gpt.positions = x.positions;
  gpt.position_rows = x.position_rows;
  return x == gpt;
}

std::vector<std::string> names_of_models() {
  std::vector<std::string> result;
  for (auto& x : known_models())
    result.push_back(x.name);
  return result;
}

std::vector<std::string> names_of_software() {
  std::vector<std::string> result;
  for (auto& x : software_generations())
    result.emplace_back(x.name);
  return result;
}

} // namespace

void transformer_options::add_model_to(option_table& table) {
  table.text("--model", named)
    .says("G", "a transformer; {words}, or a configuration file of Hugging Face's (config.json)")
    .otherwise(name)
    .offers(names_of_models());
  table.parsed("--as", family, parse_family)
    .says("FAMILY",
          "a configuration file's model is read as one of this family, whatever its model_type is, such as deepseek_v3")
    .offers(model_family_names())
    .otherwise("as its model_type says");
  table.number("--hidden", hidden, 1, 1 << 20).says("H", "its hidden size").otherwise("the model's");
  table.number("--heads", heads, 1, 1 << 16).says("A", "its attention heads").otherwise("the model's");
  table.number("--sequence", sequence, 1, 1 << 24)
    .says("S", "its tokens in a sequence")
    .otherwise(fmt::format("the model's; of a file's, at most {}", sequence_of_files));
  table.number("--vocabulary", vocabulary, 1, 1 << 24).says("V", "its vocabulary").otherwise("the model's");
  table.parsed("--imbalance", imbalance, parse_factor)
    .says("F", "tokens of the rank whose experts get the most, by the mean; 1 to the number of experts")
    .otherwise("1");
  table.parsed("--capacity", capacity, parse_factor)
    .says("F", "tokens above F times the mean are dropped")
    .otherwise("nothing is");
  table.number("--multi-token", multi_token, 0, 64)
    .says("N", "modules that predict further tokens, of a model with experts")
    .otherwise("as a file says, or 0");
}

void transformer_options::add_system_to(option_table& table) {
  std::vector<std::string> systems;
  for (auto& x : known_systems())
    systems.push_back(x.name);
  table.parsed("--system", told, system_of)
    .says("S", "the GPUs, {words}, or a JSON file of their constants")
    .offers(std::move(systems))
    .otherwise(system.name);
  table.word("--software", software, names_of_software())
    .says("NAME", "whose speed: {words}; docs/cost_models.md says which trainings each is of")
    .otherwise(fmt::format("the newest, {}; on A100 {}", newest_software, software_of_a100));
  table.word("--precision", precision_name, {"bf16", "fp8", "mxfp8", "nvfp4"})
    .says("P", "what products are computed in, {words}")
    .otherwise("bf16");
  table.word("--attention", attention_name, {"flash", "unfused"})
    .says("A", "{words}: scores in tiles that never leave the chip, or in memory")
    .otherwise("flash");
}

void transformer_options::add_to(option_table& table) {
  add_model_to(table);
  add_system_to(table);
  table.word("--mfu", counted_name, {"causal", "full"})
    .says("A", "which of attention's scores MFU and TFLOP/s count, {words}: those that a causal mask leaves, or all")
    .otherwise("causal with --attention flash, full with unfused, as these compute them");
  table.word("--recompute", recompute, {"none", "selective", "full"})
    .says("R", "what a backward runs again: {words}")
    .otherwise("none");
}

std::string transformer_options::given() const {
  return named            ? "--model"
         : family         ? "--as"
         : hidden         ? "--hidden"
         : heads          ? "--heads"
         : sequence       ? "--sequence"
         : vocabulary     ? "--vocabulary"
         : imbalance      ? "--imbalance"
         : capacity       ? "--capacity"
         : multi_token    ? "--multi-token"
         : told           ? "--system"
         : software       ? "--software"
         : precision_name ? "--precision"
         : attention_name ? "--attention"
         : counted_name   ? "--mfu"
         : recompute      ? "--recompute"
                          : "";
}

caf::expected<language_model> transformer_options::model(std::optional<uint32_t> layers) {
  if (told)
    system = *told;
  if (software) {
    TRY(with, with_generation(system, *generation_of(*software)));
    system = std::move(*with);
  }
  if (recompute)
    again = *recompute == "none"   ? recomputation::none
            : *recompute == "full" ? recomputation::full
                                   : recomputation::selective;
  if (counted_name)
    counted = *counted_name == "causal" ? counted_scores::causal : counted_scores::full;
  attention = attention_name == "unfused" ? attention_kernel::unfused : attention_kernel::flash;
  const auto precision = precision_name.value_or("bf16");
  for (auto x : {number_format::bf16, number_format::fp8, number_format::mxfp8, number_format::nvfp4})
    if (name_of(x) == precision)
      computed_in = x;
  if (system.peak_of(computed_in) == 0)
    return invalid(fmt::format("{} has no {}", system.name, precision));
  auto x = model_from(named.value_or(name), {sequence, family});
  if (!x)
    return x;
  RETURN_ERROR(change(*x, layers));
  return x;
}

caf::error transformer_options::change(language_model& x, std::optional<uint32_t> layers) const {
  if (!hidden && !heads && !layers && !sequence && !vocabulary && !imbalance && !capacity && !multi_token)
    return caf::none;
  const auto before = x;
  x.layers = layers.value_or(x.layers);
  x.sequence = sequence.value_or(x.sequence);
  x.vocabulary = vocabulary.value_or(x.vocabulary);
  const auto heads_wanted = heads.value_or(x.heads), hidden_wanted = hidden.value_or(x.hidden);
  if (is_gpt(before) && (hidden || heads)) { // a GPT's other sizes come of these
    if (hidden_wanted % heads_wanted != 0)
      return invalid(fmt::format("a hidden size of {} does not divide among {} heads", hidden_wanted, heads_wanted));
    x = gpt_shape(x.name, hidden_wanted, heads_wanted, x.layers, x.sequence, x.vocabulary);
    x.positions = before.positions;
    x.position_rows = before.position_rows;
  }
  x.hidden = hidden_wanted;
  x.heads = heads_wanted;
  RETURN_ERROR(change_experts(x));
  if (x != before)
    x.name += ", changed";
  return problem_of(x);
}

caf::error transformer_options::change_experts(language_model& x) const {
  auto& e = x.experts;
  if (auto* given = imbalance.value_or(1) != 1     ? "--imbalance"
                    : capacity                     ? "--capacity"
                    : multi_token.value_or(0) != 0 ? "--multi-token"
                                                   : nullptr;
      given != nullptr && e.count == 0)
    return invalid(fmt::format("{} is of models with experts, such as deepseek-v3; {} has none", given,
                               named.value_or(name)));
  e.imbalance = imbalance.value_or(e.imbalance);
  e.capacity = capacity.value_or(e.capacity);
  x.multi_token = multi_token.value_or(x.multi_token);
  if (capacity && *capacity >= e.imbalance)
    return invalid(
      fmt::format("a --capacity of {} drops nothing where no rank has more than {} times the mean: say a larger "
                  "--imbalance",
                  *capacity, e.imbalance));
  return caf::none;
}

namespace {

const known_cost_model models[] = {
  {.name = "lab", .what = "seconds, on a GPU of 1000 TFLOP/s", .laboratory = training::lab_costs},
  {.name = "puzzles", .what = "Sasha Rush's abstract units", .laboratory = training::puzzle_costs},
  {.name = "transformer", .what = "a GPT on a system, seconds and bytes"},
  {.name = "measured",
   .what = "on hosts like this one, a rank each, with the collectives' costs that `ringmaster tune` wrote into the "
           "configuration",
   .of_this_machine = true,
   .planned = false},
};

caf::expected<const known_cost_model*> parse(const std::string& text, bool planned_only) {
  auto found = std::ranges::find_if(models, [&](auto& x) { return x.name == text && (x.planned || !planned_only); });
  if (found != std::end(models))
    return &*found;
  return invalid(fmt::format("there is no cost model \"{}\"; there are: {}", text,
                             fmt::join(cost_model_names(planned_only), ", ")));
}

} // namespace

std::span<const known_cost_model> known_cost_models() {
  return models;
}

std::vector<std::string> cost_model_names(bool planned_only) {
  std::vector<std::string> result;
  for (auto& x : models)
    if (x.planned || !planned_only)
      result.emplace_back(x.name);
  return result;
}

caf::expected<const known_cost_model*> parse_cost_model(const std::string& text) {
  return parse(text, false);
}

caf::expected<const known_cost_model*> parse_planned_cost_model(const std::string& text) {
  return parse(text, true);
}

} // namespace ringmaster
