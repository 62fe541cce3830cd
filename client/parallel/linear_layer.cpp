#include "client/parallel/linear_layer.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "training/layers/matrix_products.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::parallel {

namespace {

training::matrix<const float> seen(const tensor& x) {
  return {x.values().data(), x.rows(), x.columns()};
}

training::matrix<float> written(tensor& x) {
  return {x.values().data(), x.rows(), x.columns()};
}

caf::error check_input(const tensor& x, const tensor& w) {
  if (w.shape().size() == 2 && x.columns() == w.shape().front())
    return caf::none;
  return invalid(fmt::format("an input of {} and a weight of {}: the weight must be [{} x outputs]", x.shape_text(),
                             w.shape_text(), x.columns()));
}

} // namespace

caf::expected<tensor> linear_forward(const tensor& x, const tensor& w, const tensor& b) {
  RETURN_ERROR(check_input(x, w));
  const auto outputs = w.columns();
  if (b.elements() != 0 && b.shape() != std::vector{outputs})
    return invalid(fmt::format("a weight of {} and a bias of {}: the bias must be [{}]", w.shape_text(), b.shape_text(),
                               outputs));
  tensor y{with_columns(x.shape(), outputs)};
  training::multiply(seen(x), seen(w), written(y));
  for (uint64_t i = 0; i < y.rows() && b.elements() != 0; ++i)
    for (uint64_t j = 0; j < outputs; ++j)
      y.row(i)[j] += b.values()[j];
  return y;
}

caf::expected<linear_gradients> linear_backward(const tensor& x, const tensor& w, const tensor& by_y) {
  RETURN_ERROR(check_input(x, w));
  if (by_y.shape() != with_columns(x.shape(), w.columns()))
    return invalid(fmt::format("an input of {}, a weight of {} and a gradient by the output of {}: that must have the "
                               "output's shape",
                               x.shape_text(), w.shape_text(), by_y.shape_text()));
  linear_gradients result{tensor{x.shape()}, tensor{w.shape()}, tensor{{w.columns()}}};
  training::multiply_transposed_second(seen(by_y), seen(w), written(result.x));
  training::multiply_transposed_first(seen(x), seen(by_y), written(result.w));
  for (uint64_t i = 0; i < by_y.rows(); ++i)
    for (uint64_t j = 0; j < by_y.columns(); ++j)
      result.b.values()[j] += by_y.row(i)[j];
  return result;
}

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
