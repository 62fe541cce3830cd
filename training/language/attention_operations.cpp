// Where ranks share positions: what a layer's attention needs of other positions, there and back.
#include <ringmaster/strategy/rank.hpp>

#include "training/language/tag_checks.hpp"

namespace ringmaster::training {

using namespace detail;

namespace {

bool is_sequence_shard(const value_tag& x) {
  return x.has == form::sequence && x.part.count <= position_run::of_max;
}

/// For what attention is needed.
std::string no_sequence_shard(const value_tag& x) {
  return fmt::format("it needs a sequence shard, of at most {}, and has the {}", position_run::of_max, text_of(x));
}

/// Whether one is of the same layer, step, samples and part of them as the other.
bool is_beside(const value_tag& x, const value_tag& other) {
  return x.layer == other.layer && x.step == other.step && x.samples == other.samples && x.part == other.part
         && x.has == other.has;
}

std::string not_beside(const value_tag& x, const value_tag& other) {
  return fmt::format("the {} does not go with the {}", text_of(other), text_of(x));
}

std::string not_all(const value_tag& x) {
  return fmt::format("it needs all positions, and has the {}", text_of(x));
}

} // namespace

operation<attention_keys> rank::keys(const activation& x, const weight& w) {
  auto result = start<attention_keys>(op::keys);
  auto& work = result.work_;
  set_about(work.argument, x, w);
  work.memory = {x.memory_.token(), w.memory_.token()};
  work.results[0] = x.tag();
  work.results[0].kind = value_kind::attention_keys;
  work.results[0].tensor = w.tag().tensor;
  require_usable(result, x, "input");
  require_usable(result, w, "weight");
  result.require(x.tag().has == form::whole || is_sequence_shard(x.tag()), [&] { return no_sequence_shard(x.tag()); });
  result.require(whole(w.tag()), [&] { return not_whole(w.tag()); });
  result.require(is_for(x, w), [&] { return not_for(x, w); });
  return result;
}

template <class... Values>
void rank::require_attention(operation<Values...>& its, const activation& x, const attention_keys& to) const {
  const auto &a = x.tag(), &b = to.tag();
  const bool same = a.layer == b.layer && a.step == b.step && a.samples == b.samples;
  const bool parts = b.has == form::whole || (b.has == form::sequence && a.part.count == b.part.count);
  require_usable(its, x, "input");
  require_usable(its, to, "keys");
  its.require(is_sequence_shard(a), [&] { return no_sequence_shard(a); });
  its.require(same && parts, [&] { return fmt::format("the {} are not for the {}", text_of(b), text_of(a)); });
}

operation<attention> rank::attend(const activation& x, const attention_keys& to) {
  auto result = start<attention>(op::attend);
  auto& work = result.work_;
  work.argument = x.tag();
  work.argument.tensor = to.tag().tensor;
  work.argument.set_positions(positions_of(to.tag()));
  work.memory = {x.memory_.token(), to.memory_.token()};
  work.results[0] = work.argument;
  work.results[0].kind = value_kind::attention;
  require_attention(result, x, to);
  return result;
}

operation<activation> rank::forward(const activation& x, const weight& w, attention made) {
  auto result = start<activation>(op::forward);
  auto& work = result.work_;
  set_about(work.argument, x, w);
  work.memory = {x.memory_.token(), w.memory_.token(), made.memory_.token()};
  work.results[0] = x.tag();
  ++work.results[0].layer;
  add_up(work.results[0], x.tag(), w);
  const auto& other = made.tag();
  require_usable(result, x, "input");
  require_usable(result, w, "weight");
  require_usable(result, made, "attention");
  result.require(is_sequence_shard(x.tag()), [&] { return no_sequence_shard(x.tag()); });
  result.require(whole(w.tag()), [&] { return not_whole(w.tag()); });
  result.require(is_for(x, w), [&] { return not_for(x, w); });
  result.require(is_beside(x.tag(), other), [&] { return not_beside(x.tag(), other); });
  result.require(same_columns(w.tag(), other), [&] { return of_other_columns(w.tag(), other); });
  result.require(other.positions().all(), [&] { return not_all(other); });
  work.consumed = std::move(made.memory_);
  return result;
}

template <class... Values>
void rank::require_by_output(operation<Values...>& its, const activation& x,
                             const activation_gradient& by_output) const {
  auto there = x.tag();
  ++there.layer;
  require_usable(its, by_output, "gradient");
  its.require(is_beside(there, by_output.tag()), [&] { return not_beside(there, by_output.tag()); });
}

operation<keys_gradient> rank::attend_backward(const activation& x, const attention_keys& to,
                                               const activation_gradient& by_output) {
  auto result = start<keys_gradient>(op::attend_backward);
  auto& work = result.work_;
  work.argument = x.tag();
  work.argument.tensor = to.tag().tensor;
  work.argument.set_positions(positions_of(to.tag()));
  work.memory = {x.memory_.token(), to.memory_.token(), by_output.memory_.token()};
  work.results[0] = to.tag();
  work.results[0].kind = value_kind::keys_gradient;
  work.results[0].set_positions(positions_of(x.tag()));
  require_attention(result, x, to);
  require_by_output(result, x, by_output);
  return result;
}

operation<weight_gradient, activation_gradient> rank::backward(
  const activation& x, const weight& w, const activation_gradient& by_output, keys_gradient by_keys) {
  auto result = start<weight_gradient, activation_gradient>(op::backward);
  auto& work = result.work_;
  set_about(work.argument, x, w);
  work.memory = {x.memory_.token(), w.memory_.token(), by_output.memory_.token()};
  set_gradient(work.results[0], value_kind::weight_gradient, x, w, model_->replicated);
  set_gradient(work.results[1], value_kind::activation_gradient, x, w, model_->replicated);
  const auto& other = by_keys.tag();
  require_usable(result, x, "input");
  require_usable(result, w, "weight");
  require_usable(result, by_keys, "gradient by keys");
  result.require(is_sequence_shard(x.tag()), [&] { return no_sequence_shard(x.tag()); });
  result.require(whole(w.tag()), [&] { return not_whole(w.tag()); });
  result.require(is_for(x, w), [&] { return not_for(x, w); });
  require_by_output(result, x, by_output);
  result.require(is_beside(x.tag(), other), [&] { return not_beside(x.tag(), other); });
  result.require(same_columns(w.tag(), other), [&] { return of_other_columns(w.tag(), other); });
  result.require(other.positions().all(), [&] { return not_all(other); });
  work.consumed = std::move(by_keys.memory_);
  return result;
}

/// Of a ring's runs: an empty sum takes the first as it is.
template <class Value>
operation<> rank::joined(Value& sum, Value more) {
  auto result = start<>(op::add);
  result.work_.argument = more.tag();
  result.work_.memory = {sum.memory_.token(), more.memory_.token()};
  require_usable(result, more, "summand");
  if (!result.error_ && !sum.valid()) {
    sum = std::move(more);
    result.work_.memory = {};
    return result;
  }
  const auto &a = sum.tag(), &b = more.tag();
  require_usable(result, sum, "sum");
  result.require(is_beside(a, b), [&] { return not_beside(a, b); });
  result.require(same_columns(a, b), [&] { return of_other_columns(a, b); });
  auto both = a.positions();
  result.require(join(both, b.positions()), [&] {
    return fmt::format("the {} does not go on where the {} begins or ends", text_of(b), text_of(a));
  });
  if (!result.error_)
    sum.tag_.set_positions(both);
  result.work_.consumed = std::move(more.memory_);
  return result;
}

template operation<> rank::joined(attention&, attention);
template operation<> rank::joined(keys_gradient&, keys_gradient);

} // namespace ringmaster::training
