#include "tools/training/transformer_options.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

namespace ringmaster {

using namespace training;

void transformer_options::add_to(option_table& table) {
  table.text("--model", named);
  table.number("--hidden", hidden, 1, 1 << 20);
  table.number("--heads", heads, 1, 1 << 16);
  table.number("--sequence", sequence, 1, 1 << 24);
  table.number("--vocabulary", vocabulary, 1, 1 << 24);
  table.parsed("--system", told, system_of);
  table.word("--recompute", recompute, {"none", "selective", "full"});
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
