#include "runtime/training/rank.hpp"

#include <fmt/format.h>

namespace ringmaster::training {

namespace {

/// What is made of x's part of the samples.
void set_part(value_tag& made, const value_tag& x) {
  made.has = x.has;
  made.part = x.part;
}

/// What a tensor shard of a layer makes of x is a summand; what a rank's experts make is of their positions.
void add_up(value_tag& made, const value_tag& x, const weight& w) {
  if (w.tag().has == form::experts) {
    set_part(made, x);
    return;
  }
  if (w.tag().tensor.whole())
    return;
  made.has = form::summand;
  made.part = w.tag().tensor;
}

/// Of a gradient by something of x's layer, for x's samples.
void set_gradient(value_tag& made, value_kind kind, const activation& x, const weight& w, bool replicated) {
  made.kind = kind;
  made.step = x.tag().step;
  made.layer = x.layer();
  made.samples = x.tag().samples;
  if (kind != value_kind::weight_gradient) {
    add_up(made, x.tag(), w);
    return;
  }
  made.tensor = w.tag().tensor;
  if (w.tag().has == form::experts)
    made.has = form::experts;
  else if (replicated && !made.tensor.whole())
    made.has = form::summand;
}

position_run run_of(shard x) {
  return {x.index, 1, x.count};
}

bool is_sequence_shard(const value_tag& x) {
  return x.has == form::sequence && x.part.count <= position_run::of_max;
}

void set_about(value_tag& argument, const activation& x, const weight& w) {
  argument = x.tag();
  argument.tensor = w.tag().tensor;
}

/// Sentences, the first of which counts.
std::string first_of(std::initializer_list<std::string> problems) {
  for (auto& problem : problems)
    if (!problem.empty())
      return problem;
  return {};
}

/// `problem` makes the sentence; most operations are right and need none.
template <class Problem>
std::string unless(bool holds, Problem problem) {
  return holds ? std::string{} : problem();
}

std::string is_whole(const value_tag& x) {
  return unless(x.part.whole() && x.has == form::whole,
                [&] { return fmt::format("it needs the whole, and has the {}", text_of(x)); });
}

/// For what attention is needed.
std::string is_shard_of_sequence(const value_tag& x) {
  return unless(is_sequence_shard(x), [&] {
    return fmt::format("it needs a sequence shard, of at most {}, and has the {}", position_run::of_max, text_of(x));
  });
}

/// Ranks that share positions share no layers.
std::string is_of_all_columns(const value_tag& w) {
  return w.tensor.whole() ? is_whole(w) : fmt::format("it needs the whole, and has the {}", text_of(w));
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

std::string not_for(const activation& x, const weight& w) {
  return unless(x.layer() == w.layer() && x.tag().step == w.tag().step,
                [&] { return fmt::format("the {} is not for the {}", text_of(x.tag()), text_of(w.tag())); });
}

std::string text_of(shard x) {
  return x.whole() ? "the whole" : fmt::format("shard {} of {}", x.index, x.count);
}

/// Why the other is not of the same part of the model, and at the same step: what would be.
std::string misfit(const value_tag& base, const value_tag& other) {
  if (other.layer != base.layer)
    return fmt::format("it must be of layer {}", base.layer);
  if (other.step != base.step)
    return fmt::format("it is of step {} and must be of step {}", other.step, base.step);
  if (other.part != base.part)
    return fmt::format("it is {} and must be {}: gather, scatter or slice one of them", text_of(other.part),
                       text_of(base.part));
  if (base.tensor.whole() && other.positions() != base.positions())
    return fmt::format("it is by {} and must be by {}: sum it over the ranks that share them",
                       text_of(other.positions()), text_of(base.positions()));
  if (other.tensor != base.tensor)
    return fmt::format("of what tensor-parallel ranks share it is {} and must be {}", text_of(other.tensor),
                       text_of(base.tensor));
  if ((other.has == form::experts) != (base.has == form::experts))
    return "one of them is of experts";
  if (other.has != base.has)
    return other.has == form::summand ? "it is to be summed over the tensor-parallel ranks first"
                                      : "it has been summed over the tensor-parallel ranks";
  return {};
}

std::string no_shard(shard x) {
  return unless(x.index < x.count, [&] { return fmt::format("there is no shard {} of {}", x.index, x.count); });
}

} // namespace

std::string rank::expects(const value& x, const char* name) const {
  if (usable(x))
    return {};
  if (!x.valid())
    return fmt::format("its {} has been dropped or given away", name);
  if (!x.memory_.belongs_to(on_, index_))
    return fmt::format("the {} is another rank's, which has not sent it", text_of(x.tag()));
  return fmt::format("the {} is to be fetched first", text_of(x.tag()));
}

bool rank::ready(const value& x) const {
  return usable(x) && x.tag().part.whole() && x.tag().has == form::whole;
}

/// Most operations are right, and need no sentence.
bool rank::fits(const activation& x, const weight& w) const {
  return ready(x) && ready(w) && x.layer() == w.layer() && x.tag().step == w.tag().step;
}

/// Whether the weight is of experts, and the others of the positions that are for them.
bool rank::for_experts(const weight& w, std::initializer_list<const value*> others) const {
  if (!usable(w) || w.tag().has != form::experts)
    return false;
  for (auto* x : others)
    if (!usable(*x) || x->tag().has != form::experts || x->tag().part != w.tag().tensor)
      return false;
  return true;
}

std::string rank::not_whole(const value_tag& x) {
  return is_whole(x);
}

std::string rank::not_of_experts(const value_tag& x) {
  return unless(x.has == form::experts,
                [&] { return fmt::format("it needs what experts have made, and has the {}", text_of(x)); });
}

std::string rank::no_samples(range samples) const {
  return unless(samples.begin < samples.end && samples.end <= model_->global_batch, [&] {
    return fmt::format("samples {} to {} are none of the global batch's {}", samples.begin, samples.end,
                       model_->global_batch);
  });
}

std::string rank::no_rank(uint32_t peer) const {
  if (peer < world_size_ && peer != index_)
    return {};
  return peer == index_ ? std::string{"a rank cannot do that with itself"}
                        : fmt::format("there is no rank {}, only 0 to {}", peer, world_size_ - 1);
}

operation<weight, optimizer_state> rank::load_weights(uint32_t layer, shard part, shard state_part, shard tensor) {
  auto result = start<weight, optimizer_state>(op::load_weights);
  auto& work = result.work_;
  work.results[0] = value_tag{.kind = value_kind::weight, .layer = layer, .part = part, .tensor = tensor};
  work.results[1] = value_tag{
    .kind = value_kind::optimizer_state, .layer = layer, .part = state_part, .tensor = tensor};
  work.argument = work.results[0];
  if (layer >= model_->layers)
    result.refuse(fmt::format("there is no layer {}, only 0 to {}", layer, model_->layers - 1));
  for (auto x : {part, state_part, tensor})
    result.refuse(no_shard(x));
  return result;
}

operation<weight, optimizer_state> rank::load_experts(uint32_t layer, shard experts) {
  auto result = load_weights(layer, {}, {}, experts);
  for (auto& each : result.work_.results)
    each.has = form::experts;
  result.work_.argument.has = form::experts;
  return result;
}

operation<activation> rank::input(range samples) {
  auto result = start<activation>(op::input);
  auto& work = result.work_;
  work.results[0] = value_tag{.kind = value_kind::activation, .samples = range_set{samples}};
  work.argument = work.results[0];
  result.refuse(no_samples(samples));
  return result;
}

operation<activation> rank::forward(const activation& x, const weight& w) {
  auto result = start<activation>(op::forward);
  auto& work = result.work_;
  if (!fits(x, w)) {
    const bool experts = for_experts(w, {&x});
    result.refuse(first_of({expects(x, "input"), expects(w, "weight"), experts ? "" : is_whole(x.tag()),
                            experts ? "" : is_whole(w.tag()), not_for(x, w)}));
  }
  set_about(work.argument, x, w);
  work.memory = {x.memory_.token(), w.memory_.token()};
  work.results[0] = x.tag();
  ++work.results[0].layer;
  add_up(work.results[0], x.tag(), w);
  return result;
}

operation<attention_keys> rank::keys(const activation& x, const weight& w) {
  auto result = start<attention_keys>(op::keys);
  auto& work = result.work_;
  set_about(work.argument, x, w);
  work.memory = {x.memory_.token(), w.memory_.token()};
  work.results[0] = x.tag();
  work.results[0].kind = value_kind::attention_keys;
  result.refuse(first_of({expects(x, "input"), expects(w, "weight"),
                          x.tag().has == form::whole ? "" : is_shard_of_sequence(x.tag()), is_of_all_columns(w.tag()),
                          not_for(x, w)}));
  return result;
}

operation<attention> rank::attend(const activation& x, const attention_keys& to) {
  auto result = start<attention>(op::attend);
  auto& work = result.work_;
  work.argument = x.tag();
  work.argument.set_positions(to.tag().has == form::whole ? position_run{} : run_of(to.tag().part));
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
  result.refuse(first_of({expects(x, "input"), expects(w, "weight"), expects(made, "attention"),
                          is_shard_of_sequence(x.tag()), is_of_all_columns(w.tag()), not_for(x, w),
                          not_beside(x.tag(), made.tag()), not_all(made.tag())}));
  work.consumed = std::move(made.memory_);
  return result;
}

operation<activation_gradient> rank::loss(const activation& output) {
  auto result = start<activation_gradient>(op::loss);
  auto& work = result.work_;
  work.argument = output.tag();
  work.memory[0] = output.memory_.token();
  work.results[0] = output.tag();
  work.results[0].kind = value_kind::activation_gradient;
  result.refuse(expects(output, "output"));
  if (output.tag().has != form::sequence)
    result.refuse(is_whole(output.tag()));
  if (output.layer() != model_->layers)
    result.refuse(fmt::format("the {} is not the output of the last layer, {}", text_of(output.tag()),
                              model_->layers - 1));
  return result;
}

std::string rank::mismatch(const activation& x, const weight& w, const activation_gradient& by_output) const {
  const bool next = by_output.layer() == x.layer() + 1 && by_output.tag().step == x.tag().step;
  const bool same = by_output.tag().samples == x.tag().samples;
  if (fits(x, w) && ready(by_output) && next && same)
    return {};
  const bool experts = for_experts(w, {&x, &by_output});
  return first_of(
    {expects(x, "input"), expects(w, "weight"), expects(by_output, "gradient"), experts ? "" : is_whole(x.tag()),
     experts ? "" : is_whole(w.tag()), experts ? "" : is_whole(by_output.tag()), not_for(x, w),
     next ? "" : fmt::format("the {} is not by the output of layer {}", text_of(by_output.tag()), x.layer()),
     same ? ""
          : fmt::format("the {} and the {} are of different samples", text_of(by_output.tag()), text_of(x.tag()))});
}

template <class... Values>
operation<Values...> rank::gradients(op what, const activation& x, const weight& w,
                                     const activation_gradient& by_output) const {
  auto result = start<Values...>(what);
  auto& work = result.work_;
  set_about(work.argument, x, w);
  work.memory = {x.memory_.token(), w.memory_.token(), by_output.memory_.token()};
  auto* made = work.results.data();
  (set_gradient(*made++, Values::kind, x, w, model_->replicated), ...);
  result.refuse(mismatch(x, w, by_output));
  return result;
}

operation<weight_gradient, activation_gradient> rank::backward(const activation& x, const weight& w,
                                                               const activation_gradient& by_output) {
  return gradients<weight_gradient, activation_gradient>(op::backward, x, w, by_output);
}

operation<activation_gradient> rank::backward_input(const activation& x, const weight& w,
                                                    const activation_gradient& by_output) {
  return gradients<activation_gradient>(op::backward_input, x, w, by_output);
}

operation<weight_gradient> rank::backward_weight(const activation& x, const weight& w,
                                                 const activation_gradient& by_output) {
  return gradients<weight_gradient>(op::backward_weight, x, w, by_output);
}

operation<keys_gradient> rank::attend_backward(const activation& x, const attention_keys& to,
                                               const activation_gradient& by_output) {
  auto result = start<keys_gradient>(op::attend_backward);
  auto& work = result.work_;
  work.argument = x.tag();
  work.argument.set_positions(to.tag().has == form::whole ? position_run{} : run_of(to.tag().part));
  work.memory = {x.memory_.token(), to.memory_.token(), by_output.memory_.token()};
  work.results[0] = to.tag();
  work.results[0].kind = value_kind::keys_gradient;
  work.results[0].set_positions(run_of(x.tag().part));
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
  work.results[0].set_positions(run_of(x.tag().part));
  set_gradient(work.results[1], value_kind::activation_gradient, x, w, model_->replicated);
  set_part(work.results[1], x.tag());
  result.refuse(first_of({expects(x, "input"), expects(w, "weight"), expects(by_keys, "gradient by keys"),
                          is_shard_of_sequence(x.tag()), is_of_all_columns(w.tag()), not_for(x, w),
                          not_by_output_of(x, by_output), not_beside(x.tag(), by_keys.tag()), not_all(by_keys.tag())}));
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
  } else if (auto problem = not_beside(sum.tag(), more.tag()); !problem.empty()) {
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

operation<> rank::add(weight_gradient& sum, weight_gradient more) {
  auto result = start<>(op::add);
  result.work_.argument = more.tag();
  result.work_.memory = {sum.memory_.token(), more.memory_.token()};
  if (!usable(more)) {
    result.refuse(expects(more, "gradient"));
  } else if (!sum.valid()) {
    sum = std::move(more);
    result.work_.memory = {};
    return result;
  } else if (!usable(sum)) {
    result.refuse(expects(sum, "sum"));
  } else if (auto problem = misfit(sum.tag(), more.tag()); !problem.empty()) {
    result.refuse(fmt::format("the {} does not fit the {}: {}", text_of(more.tag()), text_of(sum.tag()), problem));
  } else if (!sum.tag_.samples.add(more.tag().samples)) {
    result.refuse(fmt::format("the {} would count twice: the sum has samples {}", text_of(more.tag()),
                              sum.tag().samples.text()));
  }
  result.work_.consumed = std::move(more.memory_);
  return result;
}

template <class Value>
operation<Value> rank::sliced(Value x, shard part) {
  auto result = start<Value>(op::slice);
  auto& work = result.work_;
  work.argument = x.tag();
  work.memory[0] = x.memory_.token();
  work.results[0] = x.tag();
  work.results[0].part = part;
  if constexpr (of_activation(Value::kind))
    work.results[0].has = form::sequence;
  result.refuse(expects(x, "value"));
  result.refuse(is_whole(x.tag()));
  result.refuse(no_shard(part));
  work.consumed = std::move(x.memory_);
  return result;
}

template operation<weight> rank::sliced(weight, shard);
template operation<weight_gradient> rank::sliced(weight_gradient, shard);
template operation<activation> rank::sliced(activation, shard);
template operation<activation_gradient> rank::sliced(activation_gradient, shard);

operation<> rank::update(weight& w, optimizer_state& state, weight_gradient gradient) {
  auto result = start<>(op::update);
  const range all{0, model_->global_batch};
  const auto &a = w.tag(), &b = state.tag(), &c = gradient.tag();
  result.refuse(expects(w, "weight"));
  result.refuse(expects(state, "optimizer state"));
  result.refuse(expects(gradient, "gradient"));
  for (auto* other : {&b, &c})
    if (auto problem = misfit(a, *other); !problem.empty())
      result.refuse(fmt::format("the {} does not fit the {}: {}", text_of(*other), text_of(a), problem));
  if (!c.samples.contains(all))
    result.refuse(fmt::format("the gradient is incomplete: it has samples {} of 0-{}", c.samples.text(), all.end - 1));
  result.work_.argument = a;
  result.work_.memory = {w.memory_.token(), state.memory_.token(), gradient.memory_.token()};
  result.work_.consumed = std::move(gradient.memory_);
  if (result.error_)
    return result;
  ++w.tag_.step;
  ++state.tag_.step;
  return result;
}

operation<> rank::finish(weight w) {
  auto result = start<>(op::finish);
  result.work_.argument = w.tag();
  result.work_.memory[0] = w.memory_.token();
  result.refuse(expects(w, "weight"));
  if (w.tag().step != 1)
    result.refuse(fmt::format("the {} is not at step 1", text_of(w.tag())));
  result.work_.consumed = std::move(w.memory_);
  return result;
}

std::string rank::no_member(const pending& x, const value& argument) const {
  auto among = x.among;
  if (among.count == 0 || among.stride == 0 || among.last() >= world_size_)
    return fmt::format("a group of {} ranks from rank {} in steps of {} is none of the {} ranks there are", among.count,
                       among.first, among.stride, world_size_);
  if (!among.contains(index_))
    return fmt::format("it is none of the group's ranks, {} from rank {} in steps of {}", among.count, among.first,
                       among.stride);
  if (x.what == op::broadcast && !among.contains(x.peer))
    return fmt::format("the root, rank {}, is none of the group's", x.peer);
  return x.what != op::broadcast || x.peer == index_ ? expects(argument, "value") : "";
}

std::string rank::not_there(const pending& x, const value& argument) const {
  if (!argument.memory_.belongs_to(on_, index_))
    return expects(argument, "value");
  return argument.tag().on_host == (x.what == op::fetch)
           ? ""
           : fmt::format("the {} is there already", text_of(argument.tag()));
}

operation<> rank::send(uint32_t to, const value& x) {
  auto result = start<>(op::send);
  result.work_.peer = to;
  result.work_.argument = x.tag();
  result.work_.memory[0] = x.memory_.token();
  result.refuse(no_rank(to));
  if (!usable(x))
    result.refuse(expects(x, "value"));
  return result;
}

} // namespace ringmaster::training
