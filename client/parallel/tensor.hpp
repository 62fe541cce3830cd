#pragma once

#include <ringmaster/strategy/range_set.hpp>

#include <caf/expected.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ringmaster::parallel {

using training::range;

/// float32 numbers in a host's memory, with a shape; the last axis lies together. There are as many as the product of
/// the sides. Seen as a matrix, it has a column for each place of the last axis.
class tensor {
public:
  tensor() : shape_{0} {} ///< Nothing: [0].
  /// Zeros. At least one side.
  explicit tensor(std::vector<uint64_t> shape);
  /// Errors: invalid_argument for no side, and where there are more or fewer values than the shape has places.
  static caf::expected<tensor> of(std::vector<uint64_t> shape, std::vector<float> values);

  const std::vector<uint64_t>& shape() const noexcept { return shape_; }
  uint64_t elements() const noexcept { return values_.size(); }
  uint64_t columns() const noexcept { return shape_.back(); }
  /// The product of all sides but the last; 0 where there is no number.
  uint64_t rows() const noexcept { return values_.empty() ? 0 : elements() / columns(); }
  std::span<float> values() noexcept { return values_; }
  std::span<const float> values() const noexcept { return values_; }
  float* row(uint64_t i) noexcept { return values_.data() + i * columns(); }
  const float* row(uint64_t i) const noexcept { return values_.data() + i * columns(); }
  /// "[4 x 3 x 8]".
  std::string shape_text() const;

  friend bool operator==(const tensor&, const tensor&) = default;

private:
  std::vector<uint64_t> shape_;
  std::vector<float> values_;
};

/// The product of a shape's sides; UINT64_MAX for more than can be counted.
uint64_t elements_of(std::span<const uint64_t> shape);
/// The shape with another last side.
std::vector<uint64_t> with_columns(std::vector<uint64_t> shape, uint64_t columns);

/// Places `which` of the first axis, or of the last. Errors: out_of_range.
caf::expected<tensor> cut_first_axis(const tensor& x, range which);
caf::expected<tensor> cut_last_axis(const tensor& x, range which);
/// Part `part` of so many equal ones of the last axis. Errors: invalid_argument where it does not divide.
caf::expected<tensor> part_of_last_axis(const tensor& x, uint32_t part, uint32_t parts);

} // namespace ringmaster::parallel
