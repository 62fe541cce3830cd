#include "tools/training/transformer_options.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

namespace ringmaster {

using namespace training;

namespace {

std::vector<std::string> names_of_models() {
  std::vector<std::string> result;
  for (auto& x : known_models())
    result.push_back(x.name);
  return result;
}

} // namespace

void transformer_options::add_model_to(option_table& table) {
  table.text("--model", named)
    .says("G", "a transformer; {words}, or a configuration file of Hugging Face's (config.json)")
    .otherwise(name)
    .offers(names_of_models());
  table.number("--hidden", hidden, 1, 1 << 20).says("H", "its hidden size").otherwise("the model's");
  table.number("--heads", heads, 1, 1 << 16).says("A", "its attention heads").otherwise("the model's");
  table.number("--sequence", sequence, 1, 1 << 24).says("S", "its tokens in a sequence").otherwise("the model's");
  table.number("--vocabulary", vocabulary, 1, 1 << 24).says("V", "its vocabulary").otherwise("the model's");
}

void transformer_options::add_system_to(option_table& table) {
  std::vector<std::string> systems;
  for (auto& x : known_systems())
    systems.push_back(x.name);
  table.parsed("--system", told, system_of)
    .says("S", "the GPUs, {words}, or a JSON file of their constants")
    .offers(std::move(systems))
    .otherwise(system.name);
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
  table.word("--recompute", recompute, {"none", "selective", "full"})
    .says("R", "what a backward runs again: {words}")
    .otherwise("none");
}

std::string transformer_options::given() const {
  return named        ? "--model"
         : hidden     ? "--hidden"
         : heads      ? "--heads"
         : sequence   ? "--sequence"
         : vocabulary ? "--vocabulary"
         : told       ? "--system"
         : recompute  ? "--recompute"
                      : "";
}

caf::expected<language_model> transformer_options::model(std::optional<uint32_t> layers) {
  if (told)
    system = *told;
  if (recompute)
    again = *recompute == "none"   ? recomputation::none
            : *recompute == "full" ? recomputation::full
                                   : recomputation::selective;
  attention = attention_name == "flash" ? attention_kernel::flash : attention_kernel::unfused;
  for (auto x : {number_format::bf16, number_format::fp8, number_format::mxfp8, number_format::nvfp4})
    if (name_of(x) == precision_name)
      computed_in = x;
  if (system.peak_of(computed_in) == 0)
    return make_error(errc::invalid_argument, fmt::format("{} has no {}", system.name, precision_name));
  auto x = model_of(named.value_or(name));
  if (!x)
    return x;
  if (auto problem = change(*x, layers); !problem.empty())
    return make_error(errc::invalid_argument, problem);
  return x;
}

std::string transformer_options::change(language_model& x, std::optional<uint32_t> layers) const {
  if (!hidden && !heads && !layers && !sequence && !vocabulary)
    return {};
  x.name += ", changed";
  x.layers = layers.value_or(x.layers);
  x.sequence = sequence.value_or(x.sequence);
  x.vocabulary = vocabulary.value_or(x.vocabulary);
  const auto heads_wanted = heads.value_or(x.heads), hidden_wanted = hidden.value_or(x.hidden);
  if (x.layer_norms && (hidden || heads)) { // a GPT's other sizes come of these
    if (hidden_wanted % heads_wanted != 0)
      return fmt::format("a hidden size of {} does not divide among {} heads", hidden_wanted, heads_wanted);
    x = gpt_shape(x.name, hidden_wanted, heads_wanted, x.layers, x.sequence, x.vocabulary);
  }
  x.hidden = hidden_wanted;
  x.heads = heads_wanted;
  return problem_of(x);
}

} // namespace ringmaster
