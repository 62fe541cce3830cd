#include "client/parallel/tensor.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringmaster::parallel {

namespace {

std::string text_of(const std::vector<uint64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, " x "));
}

caf::error check_cut(const tensor& x, range which, uint64_t side, std::string_view axis) {
  if (which.begin <= which.end && which.end <= side)
    return caf::none;
  return make_error(errc::out_of_range, fmt::format("{} to {} are not within the {} axis of {}, which has {}",
                                                    which.begin, which.end, axis, x.shape_text(), side));
}

} // namespace

tensor::tensor(std::vector<uint64_t> shape) : shape_(std::move(shape)), values_(elements_of(shape_)) {
  ensure(!shape_.empty(), "a tensor has at least one side");
}

caf::expected<tensor> tensor::of(std::vector<uint64_t> shape, std::vector<float> values) {
  if (shape.empty())
    return invalid("a tensor has one side at least: a single number is one of [1]");
  if (elements_of(shape) != values.size())
    return invalid(fmt::format("a tensor of {} has {} numbers, not {}", text_of(shape), elements_of(shape),
                               values.size()));
  tensor result;
  result.shape_ = std::move(shape);
  result.values_ = std::move(values);
  return result;
}

std::string tensor::shape_text() const {
  return text_of(shape_);
}

uint64_t elements_of(std::span<const uint64_t> shape) {
  if (std::ranges::find(shape, 0u) != shape.end())
    return 0;
  uint64_t result = 1;
  for (auto side : shape)
    if (__builtin_mul_overflow(result, side, &result))
      return UINT64_MAX;
  return result;
}

std::vector<uint64_t> with_columns(std::vector<uint64_t> shape, uint64_t columns) {
  shape.back() = columns;
  return shape;
}

caf::expected<tensor> cut_first_axis(const tensor& x, range which) {
  RETURN_ERROR(check_cut(x, which, x.shape().front(), "first"));
  const auto each = x.shape().front() == 0 ? 0 : x.elements() / x.shape().front();
  auto shape = x.shape();
  shape.front() = which.count();
  tensor result{std::move(shape)};
  std::ranges::copy(x.values().subspan(which.begin * each, which.count() * each), result.values().begin());
  return result;
}

caf::expected<tensor> cut_last_axis(const tensor& x, range which) {
  RETURN_ERROR(check_cut(x, which, x.columns(), "last"));
  tensor result{with_columns(x.shape(), which.count())};
  for (uint64_t i = 0; i < x.rows(); ++i)
    std::copy(x.row(i) + which.begin, x.row(i) + which.end, result.row(i));
  return result;
}

caf::expected<tensor> part_of_last_axis(const tensor& x, uint32_t part, uint32_t parts) {
  if (parts == 0 || part >= parts || x.columns() % parts != 0)
    return invalid(fmt::format("{} has no part {} of {} equal ones of its last axis: it must be a multiple of them",
                               x.shape_text(), part, parts));
  const auto each = x.columns() / parts;
  return cut_last_axis(x, {part * each, (part + 1) * each});
}

} // namespace ringmaster::parallel
