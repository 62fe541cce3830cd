#include "client/api/handles.hpp"

#include "client/parallel/linear_layer.hpp"
#include "client/parallel/tensor_group.hpp"
#include "runtime/invariants/ensure.hpp"

#include <ringmaster/tensor_parallel.hpp>

namespace ringmaster::api {

namespace {

/// An empty tensor stands for a parameter that the layer does not have.
caf::expected<parallel::tensor> to_internal(const tensor& x) {
  if (x.shape.empty() && x.values.empty())
    return parallel::tensor{};
  return parallel::tensor::of(x.shape, x.values);
}

tensor to_public(const parallel::tensor& x) {
  return {x.shape(), {x.values().begin(), x.values().end()}};
}

expected<tensor> to_public(caf::expected<parallel::tensor>&& x) {
  if (!x)
    return public_error(x.error());
  return to_public(*x);
}

expected<tensor> vector_of(caf::expected<std::vector<float>>&& x) {
  if (!x)
    return public_error(x.error());
  return tensor{{x->size()}, std::move(*x)};
}

caf::expected<parallel::megatron_pair> to_internal(const megatron_pair& x) {
  auto v = to_internal(x.first_weight), a = to_internal(x.first_bias), w = to_internal(x.second_weight),
       b = to_internal(x.second_bias);
  for (auto* each : {&v, &a, &w, &b})
    if (!*each)
      return each->error();
  return parallel::megatron_pair{std::move(*v), std::move(*a), std::move(*w), std::move(*b)};
}

} // namespace

std::string tensor::shape_text() const {
  std::string result = "[";
  for (auto each : shape)
    result += (result.size() > 1 ? " x " : "") + std::to_string(each);
  return result + "]";
}

expected<tensor> part_of_last_axis(const tensor& x, uint32_t part, uint32_t parts) {
  auto whole = to_internal(x);
  if (!whole)
    return public_error(whole.error());
  return to_public(parallel::part_of_last_axis(*whole, part, parts));
}

expected<tensor> part_of_first_axis(const tensor& x, uint32_t part, uint32_t parts) {
  auto whole = to_internal(x);
  if (!whole)
    return public_error(whole.error());
  const auto rows = whole->shape().front();
  if (parts == 0 || part >= parts || rows % parts != 0)
    return error{errc::invalid_argument, "the first axis of " + x.shape_text() + " has no part " + std::to_string(part)
                                           + " of " + std::to_string(parts) + " equal ones"};
  const auto each = rows / parts;
  return to_public(parallel::cut_first_axis(*whole, {part * each, (part + 1) * each}));
}

expected<tensor> linear_forward(const tensor& x, const tensor& w, const tensor& b) {
  auto input = to_internal(x), weight = to_internal(w), bias = to_internal(b);
  for (auto* each : {&input, &weight, &bias})
    if (!*each)
      return public_error(each->error());
  return to_public(parallel::linear_forward(*input, *weight, *bias));
}

struct tensor_group::state {
  state(ringmaster::rank_communicator& self, ringmaster::client& host, std::chrono::nanoseconds limit)
    : group(self, host, limit) {}

  parallel::tensor_group group;
};

tensor_group::tensor_group(rank_communicator& self, std::chrono::nanoseconds limit)
  : state_(std::make_unique<state>(*self.internals().calls, self.internals().host()->calls, limit)) {}
tensor_group::~tensor_group() = default;

uint32_t tensor_group::rank() const {
  return state_->group.rank();
}

uint32_t tensor_group::size() const {
  return state_->group.size();
}

uint64_t tensor_group::bytes_sent() const {
  return state_->group.bytes_sent();
}

expected<tensor> tensor_group::all_reduce(const tensor& x) {
  auto sum = vector_of(state_->group.all_reduce(x.values));
  if (!sum)
    return sum;
  ensure(sum->values.size() == x.values.size(), "an all-reduce keeps the number of elements");
  return tensor{x.shape, std::move(sum->values)};
}

expected<tensor> tensor_group::all_gather(const tensor& x) {
  return vector_of(state_->group.all_gather(x.values));
}

expected<tensor> tensor_group::reduce_scatter(const tensor& x) {
  return vector_of(state_->group.reduce_scatter(x.values));
}

expected<tensor> tensor_group::all_to_all(const tensor& x) {
  return vector_of(state_->group.all_to_all(x.values));
}

expected<pair_output> pair_forward(tensor_group& over, const megatron_pair& layers, const tensor& x) {
  auto mine = to_internal(layers);
  if (!mine)
    return public_error(mine.error());
  auto input = to_internal(x);
  if (!input)
    return public_error(input.error());
  auto made = parallel::pair_forward(over.internals().group, *mine, *input);
  if (!made)
    return public_error(made.error());
  return pair_output{to_public(made->y), to_public(made->hidden)};
}

expected<pair_gradients> pair_backward(tensor_group& over, const megatron_pair& layers, const tensor& x,
                                       const tensor& hidden, const tensor& by_y) {
  auto mine = to_internal(layers);
  if (!mine)
    return public_error(mine.error());
  auto input = to_internal(x), middle = to_internal(hidden), gradient = to_internal(by_y);
  for (auto* each : {&input, &middle, &gradient})
    if (!*each)
      return public_error(each->error());
  auto made = parallel::pair_backward(over.internals().group, *mine, *input, *middle, *gradient);
  if (!made)
    return public_error(made.error());
  return pair_gradients{to_public(made->x), to_public(made->first_weight), to_public(made->first_bias),
                        to_public(made->second_weight), to_public(made->second_bias)};
}

} // namespace ringmaster::api
