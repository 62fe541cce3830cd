// Where ranks share the experts of a layer.
#include <ringmaster/strategy/rank.hpp>

#include "training/language/tag_checks.hpp"

namespace ringmaster::training {

using namespace detail;

/// Whether the weight is of experts, and the others of the positions that are for them.
bool rank::for_experts(const weight& w, std::initializer_list<const value*> others) const {
  if (!usable(w) || w.tag().has != form::experts)
    return false;
  for (auto* x : others)
    if (!usable(*x) || x->tag().has != form::experts || x->tag().part != w.tag().tensor)
      return false;
  return true;
}

bool rank::has_positions(const value_tag& x) {
  return is_of_positions(x);
}

std::string rank::not_of_positions(const value_tag& x) {
  return fmt::format("it needs the whole or a sequence shard, and has the {}", text_of(x));
}

std::string rank::not_of_experts(const value_tag& x) {
  return fmt::format("it needs what experts have made, and has the {}", text_of(x));
}

operation<weight, optimizer_state> rank::load_experts(uint32_t layer, shard experts, shard state_part) {
  auto result = load_weights(layer, {}, state_part, experts);
  for (auto& each : result.work_.results)
    each.has = form::experts;
  result.work_.argument.has = form::experts;
  return result;
}

} // namespace ringmaster::training
