// Where ranks share the experts of a layer.
#include "training/language/tag_checks.hpp"

#include <ringmaster/strategy/rank.hpp>

namespace ringmaster::training {

using namespace detail;

std::string rank::unusable(const value& x, const char* name) const {
  if (!x.valid())
    return fmt::format("its {} has been dropped or given away", name);
  if (!x.memory_.belongs_to(on_, index_))
    return fmt::format("the {} is another rank's, which has not sent it", text_of(x.tag()));
  return fmt::format("the {} is to be fetched first", text_of(x.tag()));
}

bool rank::ready(const value& x) const {
  return usable(x) && whole(x.tag());
}

bool rank::fits(const activation& x, const weight& w) const {
  return ready(x) && ready(w) && is_for(x, w);
}

bool rank::by_output_of(const weight& w, const activation_gradient& by_output) const {
  const auto &a = w.tag(), &b = by_output.tag();
  return a.has == form::columns ? usable(by_output) && b.has == form::columns && b.part == a.tensor : ready(by_output);
}

std::string rank::no_samples(range samples) const {
  return fmt::format("samples {} to {} are none of the global batch's {}", samples.begin, samples.end,
                     model_->global_batch);
}

std::string rank::no_other_rank(uint32_t peer) const {
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
  result.require(layer < model_->layers,
                 [&] { return fmt::format("there is no layer {}, only 0 to {}", layer, model_->layers - 1); });
  for (auto x : {part, state_part, tensor})
    result.require(is_shard(x), [&] { return no_shard(x); });
  result.require(tensor.count <= narrow_shard::count_max, [&] {
    return fmt::format("{} ranks that share a layer are more than {}", tensor.count, narrow_shard::count_max);
  });
  return result;
}

operation<weight, optimizer_state> rank::load_columns(uint32_t layer, shard columns) {
  auto result = load_weights(layer, {}, {}, columns);
  if (columns.whole())
    return result;
  for (auto& each : result.work_.results)
    each.has = form::columns;
  result.work_.argument.has = form::columns;
  return result;
}

operation<activation> rank::input(range samples) {
  auto result = start<activation>(op::input);
  auto& work = result.work_;
  work.results[0] = value_tag{.kind = value_kind::activation, .samples = range_set{samples}};
  work.argument = work.results[0];
  require_samples(result, samples);
  return result;
}

operation<activation> rank::forward(const activation& x, const weight& w) {
  auto result = start<activation>(op::forward);
  auto& work = result.work_;
  if (!fits(x, w)) {
    const bool experts = for_experts(w, {&x});
    require_usable(result, x, "input");
    require_usable(result, w, "weight");
    result.require(experts || whole(x.tag()), [&] { return not_whole(x.tag()); });
    result.require(experts || whole(w.tag()), [&] { return not_whole(w.tag()); });
    result.require(is_for(x, w), [&] { return not_for(x, w); });
  }
  set_about(work.argument, x, w);
  work.memory = {x.memory_.token(), w.memory_.token()};
  work.results[0] = x.tag();
  ++work.results[0].layer;
  set_output(work.results[0], x.tag(), w);
  return result;
}

operation<activation_gradient> rank::loss(const activation& output) {
  auto result = start<activation_gradient>(op::loss);
  auto& work = result.work_;
  work.argument = output.tag();
  work.memory[0] = output.memory_.token();
  work.results[0] = output.tag();
  work.results[0].kind = value_kind::activation_gradient;
  require_usable(result, output, "output");
  result.require(output.tag().has == form::sequence || whole(output.tag()), [&] { return not_whole(output.tag()); });
  result.require(output.layer() == model_->layers, [&] {
    return fmt::format("the {} is not the output of the last layer, {}", text_of(output.tag()), model_->layers - 1);
  });
  return result;
}

template <class... Values>
void rank::require_match(operation<Values...>& its, const activation& x, const weight& w,
                         const activation_gradient& by_output) const {
  const bool next = by_output.layer() == x.layer() + 1 && by_output.tag().step == x.tag().step;
  const bool same = by_output.tag().samples == x.tag().samples;
  if (fits(x, w) && by_output_of(w, by_output) && next && same)
    return;
  const bool experts = for_experts(w, {&x, &by_output});
  require_usable(its, x, "input");
  require_usable(its, w, "weight");
  require_usable(its, by_output, "gradient");
  its.require(experts || whole(x.tag()), [&] { return not_whole(x.tag()); });
  its.require(experts || whole(w.tag()), [&] { return not_whole(w.tag()); });
  its.require(experts || by_output_of(w, by_output), [&] { return not_by_output(w.tag(), by_output.tag()); });
  its.require(is_for(x, w), [&] { return not_for(x, w); });
  its.require(next, [&] {
    return fmt::format("the {} is not by the output of layer {}", text_of(by_output.tag()), x.layer());
  });
  its.require(same, [&] {
    return fmt::format("the {} and the {} are of different samples", text_of(by_output.tag()), text_of(x.tag()));
  });
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
  require_match(result, x, w, by_output);
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

template <class... Values>
void rank::require_fit(operation<Values...>& its, const value& base, const value& other) const {
  const auto &a = base.tag(), &b = other.tag();
  its.require(same_part(a, b),
              [&] { return fmt::format("the {} does not fit the {}: {}", text_of(b), text_of(a), misfit(a, b)); });
}

operation<> rank::add(weight_gradient& sum, weight_gradient more) {
  auto result = start<>(op::add);
  result.work_.argument = more.tag();
  result.work_.memory = {sum.memory_.token(), more.memory_.token()};
  require_usable(result, more, "gradient");
  if (!result.error_ && !sum.valid()) {
    sum = std::move(more);
    result.work_.memory = {};
    return result;
  }
  require_usable(result, sum, "sum");
  require_fit(result, sum, more);
  result.require(result.error_ || sum.tag_.samples.add(more.tag().samples), [&] {
    return fmt::format("the {} would count twice: the sum has samples {}", text_of(more.tag()),
                       sum.tag().samples.text());
  });
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
  require_usable(result, x, "value");
  if constexpr (of_activation(Value::kind)) {
    work.results[0].has = form::sequence;
    if (x.tag().has == form::sequence)
      work.results[0].part = sequence_shard(x.tag().part, part);
    else
      result.require(whole(x.tag()), [&] { return not_whole(x.tag()); });
    result.require(work.results[0].part.count != 0, [&] {
      return fmt::format("{} parts of the {} are more than the {} that its positions are cut in", part.count,
                         text_of(x.tag()), position_run::of_max);
    });
  } else {
    const bool all_of_experts = x.tag().has == form::experts && x.tag().part.whole(); // experts are whole as they are
    result.require(all_of_experts || whole(x.tag()), [&] { return not_whole(x.tag()); });
  }
  result.require(is_shard(part), [&] { return no_shard(part); });
  work.consumed = std::move(x.memory_);
  return result;
}

operation<activation_gradient> rank::slice_columns(activation_gradient x, shard part) {
  auto result = start<activation_gradient>(op::slice);
  auto& work = result.work_;
  work.argument = work.results[0] = x.tag();
  work.memory[0] = x.memory_.token();
  work.results[0].has = form::columns;
  work.results[0].part = part;
  require_usable(result, x, "value");
  result.require(whole(x.tag()), [&] { return not_whole(x.tag()); });
  result.require(is_shard(part), [&] { return no_shard(part); });
  work.consumed = std::move(x.memory_);
  return result;
}

operation<activation_gradient> rank::reduce_scatter_columns(activation_gradient x, group among) {
  auto result = together(op::reduce_scatter, std::move(x), among);
  result.work_.results[0].has = form::columns;
  return result;
}

template operation<weight> rank::sliced(weight, shard);
template operation<weight_gradient> rank::sliced(weight_gradient, shard);
template operation<activation> rank::sliced(activation, shard);
template operation<activation_gradient> rank::sliced(activation_gradient, shard);

operation<> rank::update(weight& w, optimizer_state& state, weight_gradient gradient) {
  auto result = start<>(op::update);
  const range all{0, model_->global_batch};
  require_usable(result, w, "weight");
  require_usable(result, state, "optimizer state");
  require_usable(result, gradient, "gradient");
  require_fit(result, w, state);
  require_fit(result, w, gradient);
  const auto& samples = gradient.tag().samples;
  result.require(samples.contains(all), [&] {
    return fmt::format("the gradient is incomplete: it has samples {} of 0-{}", samples.text(), all.end - 1);
  });
  result.work_.argument = w.tag();
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
  require_usable(result, w, "weight");
  result.require(w.tag().step == 1, [&] { return fmt::format("the {} is not at step 1", text_of(w.tag())); });
  result.work_.consumed = std::move(w.memory_);
  return result;
}

std::string rank::no_member(const pending& x, const value& argument) const {
  const auto& among = x.among;
  if (among.count == 0 || among.stride == 0 || among.last() >= world_size_)
    return fmt::format("a group of {} ranks from rank {} in steps of {} is none of the {} ranks there are", among.count,
                       among.first, among.stride, world_size_);
  if (!among.contains(index_))
    return fmt::format("it is none of the group's ranks, {} from rank {} in steps of {}", among.count, among.first,
                       among.stride);
  if (x.what == op::broadcast && !among.contains(x.peer))
    return fmt::format("the root, rank {}, is none of the group's", x.peer);
  return unusable(argument, "value");
}

std::string rank::not_there(const value& argument) const {
  if (!argument.memory_.belongs_to(on_, index_))
    return unusable(argument, "value");
  return fmt::format("the {} is there already", text_of(argument.tag()));
}

operation<> rank::send(uint32_t to, const value& x) {
  auto result = start<>(op::send);
  result.work_.peer = to;
  result.work_.argument = x.tag();
  result.work_.memory[0] = x.memory_.token();
  require_other_rank(result, to);
  require_usable(result, x, "value");
  return result;
}

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
