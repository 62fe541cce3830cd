// Where ranks share positions: what a layer's attention needs of other positions, there and back.
#include "runtime/training/rank.hpp"

#include "runtime/training/tag_checks.hpp"

namespace ringmaster::training {

using namespace detail;

namespace {

bool is_sequence_shard(const value_tag& x) {
  return x.has == form::sequence && x.part.count <= position_run::of_max;
}

/// For what attention is needed.
std::string is_shard_of_sequence(const value_tag& x) {
  return unless(is_sequence_shard(x), [&] {
    return fmt::format("it needs a sequence shard, of at most {}, and has the {}", position_run::of_max, text_of(x));
  });
}

/// Whether one is of the same layer, step, samples and part of them as the other.
std::string not_beside(const value_tag& x, const value_tag& other) {
  return unless(x.layer == other.layer && x.step == other.step && x.samples == other.samples && x.part == other.part
                  && x.has == other.has,
                [&] { return fmt::format("the {} does not go with the {}", text_of(other), text_of(x)); });
}

std::string not_all(const value_tag& x) {
  return unless(x.positions().all(), [&] { return fmt::format("it needs all positions, and has the {}", text_of(x)); });
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
  result.refuse(first_of({expects(x, "input"), expects(w, "weight"),
                          x.tag().has == form::whole ? "" : is_shard_of_sequence(x.tag()), is_whole(w.tag()),
                          not_for(x, w)}));
  return result;
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
  result.refuse(cannot_attend(x, to));
  return result;
}

std::string rank::cannot_attend(const activation& x, const attention_keys& to) const {
  const auto &a = x.tag(), &b = to.tag();
  const bool same = a.layer == b.layer && a.step == b.step && a.samples == b.samples;
  const bool parts = b.has == form::whole || (b.has == form::sequence && a.part.count == b.part.count);
  return first_of({expects(x, "input"), expects(to, "keys"), is_shard_of_sequence(a),
                   same && parts ? "" : fmt::format("the {} are not for the {}", text_of(b), text_of(a))});
}

operation<activation> rank::forward(const activation& x, const weight& w, attention made) {
  auto result = start<activation>(op::forward);
  auto& work = result.work_;
  set_about(work.argument, x, w);
  work.memory = {x.memory_.token(), w.memory_.token(), made.memory_.token()};
  work.results[0] = x.tag();
  ++work.results[0].layer;
  add_up(work.results[0], x.tag(), w);
  result.refuse(first_of({expects(x, "input"), expects(w, "weight"), expects(made, "attention"),
                          is_shard_of_sequence(x.tag()), is_whole(w.tag()), not_for(x, w),
                          not_beside(x.tag(), made.tag()), of_other_columns(w.tag(), made.tag()),
                          not_all(made.tag())}));
  work.consumed = std::move(made.memory_);
  return result;
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
  result.refuse(first_of({cannot_attend(x, to), not_by_output_of(x, by_output)}));
  return result;
}

/// Of sequence shards.
std::string rank::not_by_output_of(const activation& x, const activation_gradient& by_output) const {
  auto there = x.tag();
  ++there.layer;
  return first_of({expects(by_output, "gradient"), not_beside(there, by_output.tag())});
}

operation<weight_gradient, activation_gradient> rank::backward(
  const activation& x, const weight& w, const activation_gradient& by_output, keys_gradient by_keys) {
  auto result = start<weight_gradient, activation_gradient>(op::backward);
  auto& work = result.work_;
  set_about(work.argument, x, w);
  work.memory = {x.memory_.token(), w.memory_.token(), by_output.memory_.token()};
  set_gradient(work.results[0], value_kind::weight_gradient, x, w, model_->replicated);
  set_gradient(work.results[1], value_kind::activation_gradient, x, w, model_->replicated);
  result.refuse(first_of({expects(x, "input"), expects(w, "weight"), expects(by_keys, "gradient by keys"),
                          is_shard_of_sequence(x.tag()), is_whole(w.tag()), not_for(x, w),
                          not_by_output_of(x, by_output), not_beside(x.tag(), by_keys.tag()),
                          of_other_columns(w.tag(), by_keys.tag()), not_all(by_keys.tag())}));
  work.consumed = std::move(by_keys.memory_);
  return result;
}

/// Of a ring's runs: an empty sum takes the first as it is.
template <class Value>
operation<> rank::joined(Value& sum, Value more) {
  auto result = start<>(op::add);
  result.work_.argument = more.tag();
  result.work_.memory = {sum.memory_.token(), more.memory_.token()};
  if (!usable(more)) {
    result.refuse(expects(more, "summand"));
  } else if (!sum.valid()) {
    sum = std::move(more);
    result.work_.memory = {};
    return result;
  } else if (!usable(sum)) {
    result.refuse(expects(sum, "sum"));
  } else if (auto problem = first_of({not_beside(sum.tag(), more.tag()), of_other_columns(sum.tag(), more.tag())});
             !problem.empty()) {
    result.refuse(problem);
  } else if (auto both = sum.tag().positions(); join(both, more.tag().positions())) {
    sum.tag_.set_positions(both);
  } else {
    result.refuse(fmt::format("the {} does not go on where the {} begins or ends", text_of(more.tag()),
                              text_of(sum.tag())));
  }
  result.work_.consumed = std::move(more.memory_);
  return result;
}

template operation<> rank::joined(attention&, attention);
template operation<> rank::joined(keys_gradient&, keys_gradient);

} // namespace ringmaster::training
