#include "training/strategies/pipelines/layer_sharing.hpp"

namespace ringmaster::training {

layer_sharing::layer_sharing(rank& self, const model& m, const mesh& shape, turns& by_turns)
  : self_(self), model_(m), turns_(by_turns), tensor_(shape.tensor_group(self.index())),
    context_(shape.context_group(self.index())), exchange_(self, context_, true) {
  const auto sharers = std::max(m.parallel.ep, 1u);
  experts_ = shape.neighbours(self.index(), sharers);
  same_experts_ = shape.alike_neighbours(self.index(), sharers);
}

operation<weight, optimizer_state> layer_sharing::load_experts(uint32_t layer, shard state_part) {
  return self_.load_experts(layer, {experts_.index_of(self_.index()), experts_.count}, state_part);
}

task<activation> layer_sharing::own_positions(activation whole) {
  if (positions())
    whole = co_await self_.slice(std::move(whole), {context_.index_of(self_.index()), context_.count});
  if (in_sequence())
    whole = co_await self_.slice(std::move(whole), tensor_shard());
  co_return std::move(whole);
}

task<activation> layer_sharing::forward(activation& x, const weight& w, attention_keys& keys) {
  if (of_experts(x.layer()))
    co_return co_await through_experts(x, w);
  activation gathered;
  if (in_sequence())
    gathered = co_await self_.all_gather(x, tensor_);
  auto& all = in_sequence() ? gathered : x;
  activation y;
  if (positions()) {
    keys = co_await self_.keys(all, w);
    auto made = co_await exchange_.attend(all, keys);
    y = co_await self_.forward(all, w, std::move(made));
  } else {
    y = co_await self_.forward(all, w);
  }
  gathered.drop();
  if (in_sequence())
    y = co_await self_.reduce_scatter(std::move(y), tensor_);
  else if (columns())
    y = co_await self_.all_reduce(std::move(y), tensor_);
  co_return std::move(y);
}

task<layer_sharing::gradients> layer_sharing::backward(op what, const activation& x, const weight& w,
                                                       attention_keys& keys, activation_gradient& by_output) {
  if (of_experts(x.layer()))
    co_return co_await back_through_experts(what, x, w, by_output);
  activation gathered;
  activation_gradient gathered_by_output;
  if (in_sequence()) {
    gathered = co_await self_.all_gather(x, tensor_);
    gathered_by_output = co_await self_.all_gather(by_output, tensor_);
  }
  auto& all = in_sequence() ? gathered : x;
  const auto& g = in_sequence() ? gathered_by_output : by_output;
  gradients result;
  if (positions()) {
    auto by_keys = co_await exchange_.attend_backward(all, keys, g);
    keys.drop();
    std::tie(result.by_weight, result.by_input) = co_await self_.backward(all, w, g, std::move(by_keys));
  } else {
    result = co_await gradients_of(what, all, w, g);
  }
  co_return std::move(result);
}

task<layer_sharing::gradients> layer_sharing::gradients_of(op what, const activation& x, const weight& w,
                                                           const activation_gradient& by_output) {
  gradients result;
  if (what == op::backward)
    std::tie(result.by_weight, result.by_input) = co_await self_.backward(x, w, by_output);
  else if (what == op::backward_input)
    result.by_input = co_await self_.backward_input(x, w, by_output);
  else
    result.by_weight = co_await self_.backward_weight(x, w, by_output);
  co_return std::move(result);
}

template <class Value>
task<Value> layer_sharing::beside_another(operation<Value> way) {
  if (!turns_.any())
    co_return co_await std::move(way);
  auto moving = self_.aside(std::move(way));
  co_await turns_.pass();
  co_return co_await std::move(moving);
}

task<activation_gradient> layer_sharing::completed(gradients made) {
  auto& x = made.by_input;
  if (!x.valid())
    co_return std::move(x);
  if (x.tag().has == form::experts)
    co_return co_await brought_back(std::move(x), made.samples, made.positions);
  if (in_sequence())
    co_return co_await self_.reduce_scatter(std::move(x), tensor_);
  if (columns())
    co_return co_await self_.all_reduce(std::move(x), tensor_);
  co_return std::move(x);
}

/// What each rank's positions were, and, where tensor-parallel ranks have all of them between layers, each other's.
template <class Value>
task<Value> layer_sharing::brought_back(Value x, range samples, shard positions) {
  auto own = co_await beside_another(self_.combine(std::move(x), samples, experts_, positions));
  if (columns() && !in_sequence())
    own = co_await self_.all_gather(own, tensor_);
  co_return std::move(own);
}

task<activation> layer_sharing::through_experts(activation& x, const weight& w) {
  if (columns() && !in_sequence()) // each sends a part of what all of them have
    x = co_await self_.slice(std::move(x), tensor_shard());
  const auto samples = x.tag().samples.first();
  const auto positions = x.tag().part;
  x = co_await beside_another(self_.dispatch(std::move(x), experts_));
  auto made = co_await self_.forward(x, w);
  co_return co_await brought_back(std::move(made), samples, positions);
}

task<layer_sharing::gradients> layer_sharing::back_through_experts(op what, const activation& x, const weight& w,
                                                                   activation_gradient& by_output) {
  if (what == op::backward_weight) // the other half has taken it there
    co_return co_await gradients_of(what, x, w, by_output);
  if (columns() && !in_sequence())
    by_output = co_await self_.slice(std::move(by_output), tensor_shard());
  const auto samples = by_output.tag().samples.first();
  const auto positions = by_output.tag().part;
  by_output = co_await beside_another(self_.dispatch(std::move(by_output), experts_));
  auto result = co_await gradients_of(what, x, w, by_output);
  result.samples = samples;
  result.positions = positions;
  if (what == op::backward)
    by_output.drop();
  co_return std::move(result);
}

task<activation_gradient> layer_sharing::loss(activation output) {
  if (!in_sequence())
    co_return co_await self_.loss(output);
  auto all = co_await self_.all_gather(output, tensor_);
  auto by_output = co_await self_.loss(all);
  co_return co_await self_.slice(std::move(by_output), tensor_shard());
}

task<weight_gradient> layer_sharing::sum_replicated(weight_gradient x) {
  if (!columns() || !model_.replicated)
    co_return std::move(x);
  co_return co_await self_.all_reduce(std::move(x), tensor_);
}

} // namespace ringmaster::training
