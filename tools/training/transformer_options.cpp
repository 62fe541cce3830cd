#include "tools/training/transformer_options.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

namespace ringmaster {

using namespace training;

namespace {

std::vector<std::string> known_models() {
  std::vector<std::string> result;
  for (auto& x : known_gpts())
    result.push_back(x.name);
  return result;
}

} // namespace

void transformer_options::add_model_to(option_table& table) {
  table.text("--model", named).says("G", "a GPT; {words}").otherwise(name).offers(known_models());
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

caf::expected<gpt> transformer_options::model(std::optional<uint32_t> layers) {
  if (told)
    system = *told;
  if (recompute)
    again = *recompute == "none"   ? recomputation::none
            : *recompute == "full" ? recomputation::full
                                   : recomputation::selective;
  auto x = gpt_of(named.value_or(name));
  if (!x)
    return x;
  if (hidden || heads || layers || sequence || vocabulary)
    x->name += ", changed";
  x->hidden = hidden.value_or(x->hidden);
  x->heads = heads.value_or(x->heads);
  x->layers = layers.value_or(x->layers);
  x->sequence = sequence.value_or(x->sequence);
  x->vocabulary = vocabulary.value_or(x->vocabulary);
  if (x->hidden % x->heads != 0)
    return make_error(errc::invalid_argument,
                      fmt::format("a hidden size of {} does not divide among {} heads", x->hidden, x->heads));
  return x;
}

} // namespace ringmaster
