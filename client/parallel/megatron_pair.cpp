#include "client/parallel/megatron_pair.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace ringmaster::parallel {

namespace {

caf::expected<tensor> sum_over(tensor_group& over, const tensor& summand) {
  TRY(sum, over.all_reduce(summand.values()));
  return tensor::of(summand.shape(), std::move(*sum));
}

caf::error check_bias(const tensor& bias, uint64_t outputs) {
  if (bias.elements() == 0 || bias.shape() == std::vector{outputs})
    return caf::none;
  return invalid(fmt::format("the second bias of {} must be [{}]", bias.shape_text(), outputs));
}

} // namespace

caf::expected<pair_output> pair_forward(tensor_group& over, const megatron_pair& layers, const tensor& x) {
  RETURN_ERROR(check_bias(layers.second_bias, layers.second_weight.columns()));
  TRY(hidden, linear_forward(x, layers.first_weight, layers.first_bias));
  for (auto& each : hidden->values())
    each = std::max(each, 0.F);
  TRY(summand, linear_forward(*hidden, layers.second_weight));
  TRY(y, sum_over(over, *summand));
  const auto bias = layers.second_bias.values(); // once, behind the sum
  for (uint64_t i = 0; i < y->rows() && !bias.empty(); ++i)
    std::transform(bias.begin(), bias.end(), y->row(i), y->row(i), std::plus{});
  return pair_output{std::move(*y), std::move(*hidden)};
}

caf::expected<pair_gradients> pair_backward(tensor_group& over, const megatron_pair& layers, const tensor& x,
                                            const tensor& hidden, const tensor& by_y) {
  TRY(second, linear_backward(hidden, layers.second_weight, by_y));
  auto& by_hidden = second->x;
  for (uint64_t i = 0; i < by_hidden.elements(); ++i)
    if (hidden.values()[i] <= 0)
      by_hidden.values()[i] = 0;
  TRY(first, linear_backward(x, layers.first_weight, by_hidden));
  TRY(by_x, sum_over(over, first->x));
  return pair_gradients{std::move(*by_x), std::move(first->w), std::move(first->b), std::move(second->w),
                        std::move(second->b)};
}

} // namespace ringmaster::parallel
