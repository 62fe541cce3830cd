#include "runtime/training/rank.hpp"

#include <fmt/format.h>

namespace ringmaster::training {

namespace {

/// What a tensor shard of a layer makes is a summand.
void add_up(value_tag& made, const weight& w) {
  if (w.tag().tensor.whole())
    return;
  made.has = form::summand;
  made.part = w.tag().tensor;
}

/// Of a gradient by something of x's layer, for x's samples.
value_tag gradient_tag(value_kind kind, const activation& x, const weight& w) {
  value_tag result{.kind = kind, .step = x.tag().step, .layer = x.layer(), .samples = x.tag().samples};
  if (kind == value_kind::weight_gradient)
    result.tensor = w.tag().tensor;
  else
    add_up(result, w);
  return result;
}

value_tag about(const activation& x, const weight& w) {
  auto result = x.tag();
  result.tensor = w.tag().tensor;
  return result;
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

std::string not_for(const activation& x, const weight& w) {
  return unless(x.layer() == w.layer() && x.tag().step == w.tag().step,
                [&] { return fmt::format("the {} is not for the {}", text_of(x.tag()), text_of(w.tag())); });
}

std::string no_shard(shard x) {
  return unless(x.index < x.count, [&] { return fmt::format("there is no shard {} of {}", x.index, x.count); });
}

} // namespace

std::string rank::expects(const value& x, const char* name) const {
  if (!x.valid())
    return fmt::format("its {} has been dropped or given away", name);
  if (!x.memory_.belongs_to(on_, index_))
    return fmt::format("the {} is another rank's, which has not sent it", text_of(x.tag()));
  return x.tag().on_host ? fmt::format("the {} is to be fetched first", text_of(x.tag())) : "";
}

bool rank::ready(const value& x) const {
  return x.memory_.belongs_to(on_, index_) && !x.tag().on_host && x.tag().part.whole() && x.tag().has == form::whole;
}

/// Most operations are right, and need no sentence.
bool rank::fits(const activation& x, const weight& w) const {
  return ready(x) && ready(w) && x.layer() == w.layer() && x.tag().step == w.tag().step;
}

pending rank::start(op what) const {
  pending result;
  result.what = what;
  result.rank = index_;
  return result;
}

std::string rank::refusal(op what, std::string_view why) const {
  return why.empty() ? std::string{} : fmt::format("rank {}, {}: {}", index_, name_of(what), why);
}

std::string rank::no_rank(op what, uint32_t peer) const {
  if (peer < world_size_ && peer != index_)
    return {};
  return refusal(what, peer == index_ ? std::string{"a rank cannot do that with itself"}
                                      : fmt::format("there is no rank {}, only 0 to {}", peer, world_size_ - 1));
}

operation<weight, optimizer_state> rank::load_weights(uint32_t layer, shard part, shard state_part, shard tensor) {
  auto work = start(op::load_weights);
  work.results[0] = value_tag{.kind = value_kind::weight, .layer = layer, .part = part, .tensor = tensor};
  work.results[1] = value_tag{
    .kind = value_kind::optimizer_state, .layer = layer, .part = state_part, .tensor = tensor};
  work.argument = work.results[0];
  return {*on_, std::move(work),
          refusal(op::load_weights, first_of({unless(layer < model_->layers,
                                                     [&] {
                                                       return fmt::format("there is no layer {}, only 0 to {}", layer,
                                                                          model_->layers - 1);
                                                     }),
                                              no_shard(part), no_shard(state_part), no_shard(tensor)}))};
}

operation<activation> rank::input(range samples) {
  auto work = start(op::input);
  work.results[0] = value_tag{.kind = value_kind::activation, .samples = range_set{samples}};
  work.argument = work.results[0];
  return {*on_, std::move(work),
          refusal(op::input, unless(samples.begin < samples.end && samples.end <= model_->global_batch, [&] {
                    return fmt::format("samples {} to {} are none of the global batch's {}", samples.begin, samples.end,
                                       model_->global_batch);
                  }))};
}

operation<activation> rank::forward(const activation& x, const weight& w) {
  auto work = start(op::forward);
  std::string problem;
  if (!fits(x, w))
    problem = first_of(
      {expects(x, "input"), expects(w, "weight"), is_whole(x.tag()), is_whole(w.tag()), not_for(x, w)});
  work.argument = about(x, w);
  work.results[0] = x.tag();
  ++work.results[0].layer;
  add_up(work.results[0], w);
  return {*on_, std::move(work), refusal(op::forward, problem)};
}

operation<activation_gradient> rank::loss(const activation& output) {
  auto work = start(op::loss);
  work.argument = output.tag();
  work.results[0] = output.tag();
  work.results[0].kind = value_kind::activation_gradient;
  return {*on_, std::move(work),
          refusal(op::loss, first_of({expects(output, "output"), is_whole(output.tag()),
                                      unless(output.layer() == model_->layers, [&] {
                                        return fmt::format("the {} is not the output of the last layer, {}",
                                                           text_of(output.tag()), model_->layers - 1);
                                      })}))};
}

std::string rank::mismatch(const activation& x, const weight& w, const activation_gradient& by_output) const {
  if (fits(x, w) && ready(by_output) && by_output.layer() == x.layer() + 1 && by_output.tag().step == x.tag().step
      && by_output.tag().samples == x.tag().samples)
    return {};
  return first_of(
    {expects(x, "input"), expects(w, "weight"), expects(by_output, "gradient"), is_whole(x.tag()), is_whole(w.tag()),
     is_whole(by_output.tag()), not_for(x, w),
     unless(
       by_output.layer() == x.layer() + 1 && by_output.tag().step == x.tag().step,
       [&] { return fmt::format("the {} is not by the output of layer {}", text_of(by_output.tag()), x.layer()); }),
     unless(by_output.tag().samples == x.tag().samples, [&] {
       return fmt::format("the {} and the {} are of different samples", text_of(by_output.tag()), text_of(x.tag()));
     })});
}

operation<weight_gradient, activation_gradient> rank::backward(const activation& x, const weight& w,
                                                               const activation_gradient& by_output) {
  auto work = start(op::backward);
  work.argument = about(x, w);
  work.results[0] = gradient_tag(value_kind::weight_gradient, x, w);
  work.results[1] = gradient_tag(value_kind::activation_gradient, x, w);
  return {*on_, std::move(work), refusal(op::backward, mismatch(x, w, by_output))};
}

operation<activation_gradient> rank::backward_input(const activation& x, const weight& w,
                                                    const activation_gradient& by_output) {
  auto work = start(op::backward_input);
  work.argument = about(x, w);
  work.results[0] = gradient_tag(value_kind::activation_gradient, x, w);
  return {*on_, std::move(work), refusal(op::backward_input, mismatch(x, w, by_output))};
}

operation<weight_gradient> rank::backward_weight(const activation& x, const weight& w,
                                                 const activation_gradient& by_output) {
  auto work = start(op::backward_weight);
  work.argument = about(x, w);
  work.results[0] = gradient_tag(value_kind::weight_gradient, x, w);
  return {*on_, std::move(work), refusal(op::backward_weight, mismatch(x, w, by_output))};
}

operation<> rank::add(weight_gradient& sum, weight_gradient more) {
  auto work = start(op::add);
  work.argument = more.tag();
  auto problem = expects(more, "gradient");
  if (problem.empty() && !sum.valid()) {
    sum = std::move(more);
    return {*on_, std::move(work), {}};
  }
  if (problem.empty())
    problem = expects(sum, "sum");
  if (problem.empty()
      && (sum.layer() != more.layer() || sum.tag().step != more.tag().step || sum.tag().part != more.tag().part
          || sum.tag().tensor != more.tag().tensor))
    problem = fmt::format("the {} and the {} do not go together", text_of(sum.tag()), text_of(more.tag()));
  if (problem.empty() && !sum.tag_.samples.add(more.tag().samples))
    problem = fmt::format("the {} would count twice: the sum has samples {}", text_of(more.tag()),
                          sum.tag().samples.text());
  work.consumed = std::move(more.memory_);
  return {*on_, std::move(work), refusal(op::add, problem)};
}

template <class Value>
operation<Value> rank::sliced(Value x, shard part) {
  auto work = start(op::slice);
  work.argument = x.tag();
  work.results[0] = x.tag();
  work.results[0].part = part;
  if constexpr (of_activation(Value::kind))
    work.results[0].has = form::sequence;
  auto problem = first_of({expects(x, "value"), is_whole(x.tag()), no_shard(part)});
  work.consumed = std::move(x.memory_);
  return {*on_, std::move(work), refusal(op::slice, problem)};
}

template operation<weight> rank::sliced(weight, shard);
template operation<weight_gradient> rank::sliced(weight_gradient, shard);
template operation<activation> rank::sliced(activation, shard);
template operation<activation_gradient> rank::sliced(activation_gradient, shard);

operation<> rank::update(weight& w, optimizer_state& state, weight_gradient gradient) {
  auto work = start(op::update);
  const range all{0, model_->global_batch};
  auto problem = first_of({expects(w, "weight"), expects(state, "optimizer state"), expects(gradient, "gradient"),
                           unless(gradient.layer() == w.layer() && state.layer() == w.layer()
                                    && gradient.tag().part == w.tag().part && state.tag().part == w.tag().part
                                    && gradient.tag().tensor == w.tag().tensor && state.tag().tensor == w.tag().tensor
                                    && state.tag().step == w.tag().step && gradient.tag().step == w.tag().step,
                                  [&] {
                                    return fmt::format("the {}, the {} and the {} do not go together", text_of(w.tag()),
                                                       text_of(state.tag()), text_of(gradient.tag()));
                                  }),
                           unless(gradient.tag().samples.contains(all), [&] {
                             return fmt::format("the gradient is incomplete: it has samples {} of 0-{}",
                                                gradient.tag().samples.text(), all.end - 1);
                           })});
  work.argument = w.tag();
  work.consumed = std::move(gradient.memory_);
  if (problem.empty()) {
    ++w.tag_.step;
    ++state.tag_.step;
  }
  return {*on_, std::move(work), refusal(op::update, problem)};
}

operation<> rank::finish(weight w) {
  auto work = start(op::finish);
  work.argument = w.tag();
  auto problem = first_of({expects(w, "weight"), unless(w.tag().step == 1, [&] {
                             return fmt::format("the {} is not at step 1", text_of(w.tag()));
                           })});
  work.consumed = std::move(w.memory_);
  return {*on_, std::move(work), refusal(op::finish, problem)};
}

std::string rank::no_member(const pending& x, const value& argument) const {
  auto among = x.among;
  std::string problem;
  if (among.count == 0 || among.stride == 0 || among.last() >= world_size_)
    problem = fmt::format("a group of {} ranks from rank {} in steps of {} is none of the {} ranks there are",
                          among.count, among.first, among.stride, world_size_);
  else if (!among.contains(index_))
    problem = fmt::format("it is none of the group's ranks, {} from rank {} in steps of {}", among.count, among.first,
                          among.stride);
  else if (x.what == op::broadcast && !among.contains(x.peer))
    problem = fmt::format("the root, rank {}, is none of the group's", x.peer);
  else if (x.what != op::broadcast || x.peer == index_)
    problem = expects(argument, "value");
  return refusal(x.what, problem);
}

std::string rank::not_there(const pending& x, const value& argument) const {
  if (!argument.memory_.belongs_to(on_, index_))
    return refusal(x.what, expects(argument, "value"));
  return refusal(x.what, unless(argument.tag().on_host == (x.what == op::fetch),
                                [&] { return fmt::format("the {} is there already", text_of(argument.tag())); }));
}

operation<> rank::send(uint32_t to, const value& x) {
  auto work = start(op::send);
  work.peer = to;
  work.argument = x.tag();
  auto problem = no_rank(op::send, to);
  if (problem.empty())
    problem = refusal(op::send, expects(x, "value"));
  return {*on_, std::move(work), problem};
}

pending rank::receiving(uint32_t from, value_kind kind) const {
  auto work = start(op::receive);
  work.peer = from;
  work.argument.kind = kind;
  return work;
}

} // namespace ringmaster::training
