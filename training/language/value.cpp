#include <ringmaster/strategy/value.hpp>

#include "training/language/executor.hpp"

#include <fmt/format.h>

namespace ringmaster::training {

namespace {

std::string of_columns(const value_tag& x) {
  return x.tensor.whole() ? "" : fmt::format(", tensor shard {} of {}", x.tensor.index, x.tensor.count);
}

std::string of_part(const value_tag& x) {
  auto text = x.part.whole() ? "" : fmt::format(", shard {} of {}", x.part.index, x.part.count);
  if (x.has == form::experts)
    return text + fmt::format(", experts of rank {} of {}", x.tensor.index, x.tensor.count);
  if (x.has == form::columns)
    return text + fmt::format(", column shard {} of {}", x.tensor.index, x.tensor.count);
  return text + of_columns(x);
}

std::string of_form(const value_tag& x) {
  auto named = [&](const char* name) { return fmt::format(", {} {} of {}", name, x.part.index, x.part.count); };
  switch (x.has) {
    case form::whole: return {};
    case form::summand:
      return (x.part.whole() ? "" : named("sequence shard"))
             + fmt::format(", summand {} of {}", x.tensor.index, x.tensor.count);
    case form::sequence: return named("sequence shard");
    case form::columns: return named("column shard");
    case form::experts:
      return fmt::format(", for the experts of rank {} of {}{}", x.part.index, x.part.count,
                         x.positions().all() ? "" : ", " + text_of(x.positions()));
  }
  return {};
}

} // namespace

void storage::give_back() noexcept {
  ++detail::changes;
  std::exchange(owner_, nullptr)->release(rank_, token_);
}

bool join(position_run& a, const position_run& b) {
  if (a.of != b.of || a.count + b.count > a.of)
    return false;
  if (b.first == (a.first + a.count) % a.of)
    a.count += b.count;
  else if (a.first == (b.first + b.count) % a.of)
    a = {b.first, a.count + b.count, a.of};
  else
    return false;
  if (a.all())
    a = {};
  return true;
}

std::string text_of(const position_run& x) {
  return x.all()        ? "all positions"
         : x.count == 1 ? fmt::format("positions {} of {}", x.first, x.of)
                        : fmt::format("positions {} to {} of {}", x.first, (x.first + x.count - 1) % x.of, x.of);
}

std::string text_of(value_kind x) {
  switch (x) {
    case value_kind::weight: return "a weight";
    case value_kind::optimizer_state: return "an optimizer state";
    case value_kind::activation: return "an activation";
    case value_kind::activation_gradient: return "an activation's gradient";
    case value_kind::weight_gradient: return "a weight's gradient";
    case value_kind::attention_keys: return "keys and values";
    case value_kind::attention: return "what attention has made";
    case value_kind::keys_gradient: return "a gradient by keys and values";
    default: return "nothing";
  }
}

namespace {

std::string on_device(const value_tag& x) {
  switch (x.kind) {
    case value_kind::weight: return fmt::format("weight of layer {}, step {}{}", x.layer, x.step, of_part(x));
    case value_kind::optimizer_state:
      return fmt::format("optimizer state of layer {}, step {}{}", x.layer, x.step, of_part(x));
    case value_kind::activation:
      return fmt::format("input of layer {}, samples {}{}", x.layer, x.samples.text(), of_form(x));
    case value_kind::activation_gradient:
      return fmt::format("gradient by the input of layer {}, samples {}{}", x.layer, x.samples.text(), of_form(x));
    case value_kind::weight_gradient:
      return fmt::format("gradient by the weight of layer {}, samples {}{}{}{}", x.layer, x.samples.text(), of_part(x),
                         x.has == form::summand ? ", not summed over tensor shards" : "",
                         x.positions().all() ? "" : ", " + text_of(x.positions()));
    case value_kind::attention_keys:
      return fmt::format("keys of layer {}, samples {}{}{}", x.layer, x.samples.text(), of_form(x), of_columns(x));
    case value_kind::attention:
      return fmt::format("attention of layer {}, samples {}{}{}, to {}", x.layer, x.samples.text(), of_form(x),
                         of_columns(x), text_of(x.positions()));
    case value_kind::keys_gradient:
      return fmt::format("gradient by the keys of layer {}, samples {}{}{}, from {}", x.layer, x.samples.text(),
                         of_form(x), of_columns(x), text_of(x.positions()));
    default: return "nothing";
  }
}

} // namespace

std::string text_of(const value_tag& x) {
  return on_device(x) + (x.on_host ? ", on the host" : "");
}

} // namespace ringmaster::training
