#include "client/parallel/megatron_pair.hpp"

#include "messages/errc.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace ringmaster::parallel {

namespace {

caf::expected<tensor> sum_over(tensor_group& over, const tensor& summand) {
  auto sum = over.all_reduce(summand.values());
  if (!sum)
    return std::move(sum.error());
  return tensor::of(summand.shape(), std::move(*sum));
}

caf::error check_bias(const tensor& bias, uint64_t outputs) {
  if (bias.elements() == 0 || bias.shape() == std::vector{outputs})
    return caf::none;
  return invalid(fmt::format("the second bias of {} must be [{}]", bias.shape_text(), outputs));
}

} // namespace

caf::expected<pair_output> pair_forward(tensor_group& over, const megatron_pair& layers, const tensor& x) {
  if (auto problem = check_bias(layers.second_bias, layers.second_weight.columns()))
    return problem;
  auto hidden = linear_forward(x, layers.first_weight, layers.first_bias);
  if (!hidden)
    return std::move(hidden.error());
  for (auto& each : hidden->values())
    each = std::max(each, 0.F);
  auto summand = linear_forward(*hidden, layers.second_weight);
  if (!summand)
    return std::move(summand.error());
  auto y = sum_over(over, *summand);
  if (!y)
    return std::move(y.error());
  const auto bias = layers.second_bias.values(); // once, behind the sum
  for (uint64_t i = 0; i < y->rows() && !bias.empty(); ++i)
    std::transform(bias.begin(), bias.end(), y->row(i), y->row(i), std::plus{});
  return pair_output{std::move(*y), std::move(*hidden)};
}

caf::expected<pair_gradients> pair_backward(tensor_group& over, const megatron_pair& layers, const tensor& x,
                                            const tensor& hidden, const tensor& by_y) {
  auto second = linear_backward(hidden, layers.second_weight, by_y);
  if (!second)
    return std::move(second.error());
  auto& by_hidden = second->x;
  for (uint64_t i = 0; i < by_hidden.elements(); ++i)
    if (hidden.values()[i] <= 0)
      by_hidden.values()[i] = 0;
  auto first = linear_backward(x, layers.first_weight, by_hidden);
  if (!first)
    return std::move(first.error());
  auto by_x = sum_over(over, first->x);
  if (!by_x)
    return std::move(by_x.error());
  return pair_gradients{std::move(*by_x), std::move(first->w), std::move(first->b), std::move(second->w),
                        std::move(second->b)};
}

} // namespace ringmaster::parallel
