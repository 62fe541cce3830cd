#include "runtime/training/rank.hpp"

#include "runtime/training/tag_checks.hpp"

namespace ringmaster::training {

using namespace detail;

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
  return usable(x) && whole(x.tag());
}

/// Most operations are right, and need no sentence.
bool rank::fits(const activation& x, const weight& w) const {
  return ready(x) && ready(w) && x.layer() == w.layer() && x.tag().step == w.tag().step;
}

bool rank::by_output_of(const weight& w, const activation_gradient& by_output) const {
  const auto &a = w.tag(), &b = by_output.tag();
  return a.has == form::columns ? usable(by_output) && b.has == form::columns && b.part == a.tensor : ready(by_output);
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
  if (tensor.count > narrow_shard::count_max)
    result.refuse(fmt::format("{} ranks that share a layer are more than {}", tensor.count, narrow_shard::count_max));
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
  if (fits(x, w) && by_output_of(w, by_output) && next && same)
    return {};
  const bool experts = for_experts(w, {&x, &by_output});
  return first_of(
    {expects(x, "input"), expects(w, "weight"), expects(by_output, "gradient"), experts ? "" : is_whole(x.tag()),
     experts ? "" : is_whole(w.tag()),
     experts || by_output_of(w, by_output) ? "" : not_by_output(w.tag(), by_output.tag()), not_for(x, w),
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
  result.refuse(expects(x, "value"));
  if constexpr (of_activation(Value::kind)) {
    work.results[0].has = form::sequence;
    if (x.tag().has == form::sequence)
      work.results[0].part = sequence_shard(x.tag().part, part);
    else
      result.refuse(is_whole(x.tag()));
    if (work.results[0].part.count == 0)
      result.refuse(fmt::format("{} parts of the {} are more than the {} that its positions are cut in", part.count,
                                text_of(x.tag()), position_run::of_max));
  } else if (x.tag().has != form::experts || !x.tag().part.whole()) { // experts are whole as they are
    result.refuse(is_whole(x.tag()));
  }
  result.refuse(no_shard(part));
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
  result.refuse(expects(x, "value"));
  result.refuse(is_whole(x.tag()));
  result.refuse(no_shard(part));
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
