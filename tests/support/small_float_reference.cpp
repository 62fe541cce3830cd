#include "tests/support/small_float_reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace ringmaster::test {

small_float_reference::small_float_reference(proto::DataType type) {
  switch (type) {
    case proto::FLOAT16: exponent_bits_ = 5, fraction_bits_ = 10; break;
    case proto::BFLOAT16: exponent_bits_ = 8, fraction_bits_ = 7; break;
    case proto::FLOAT8_E4M3: exponent_bits_ = 4, fraction_bits_ = 3, has_infinity_ = false; break;
    default: exponent_bits_ = 5, fraction_bits_ = 2; break;
  }
  // Infinity's encoding is the first that is no number; in e4m3 the last one is NaN.
  const uint32_t count = has_infinity_ ? ((1u << exponent_bits_) - 1) << fraction_bits_ : sign_bit() - 1;
  const int bias = (1 << (exponent_bits_ - 1)) - 1;
  for (uint32_t bits = 0; bits <= count; ++bits) {
    const int exponent = static_cast<int>(bits >> fraction_bits_);
    const uint32_t fraction = bits & ((1u << fraction_bits_) - 1);
    const uint32_t significand = exponent == 0 ? fraction : fraction + (1u << fraction_bits_);
    numbers_.push_back(std::ldexp(significand, std::max(exponent, 1) - bias - fraction_bits_));
  }
}

const small_float_reference& small_float_reference::of(proto::DataType type) {
  static const std::map<proto::DataType, small_float_reference> all{
    {proto::FLOAT16, small_float_reference{proto::FLOAT16}},
    {proto::BFLOAT16, small_float_reference{proto::BFLOAT16}},
    {proto::FLOAT8_E4M3, small_float_reference{proto::FLOAT8_E4M3}},
    {proto::FLOAT8_E5M2, small_float_reference{proto::FLOAT8_E5M2}}};
  return all.at(type);
}

double small_float_reference::value(uint32_t bits) const {
  const uint32_t magnitude = bits & (sign_bit() - 1);
  double result = std::numeric_limits<double>::quiet_NaN();
  if (magnitude < finite_count())
    result = numbers_[magnitude];
  else if (has_infinity_ && magnitude == finite_count())
    result = std::numeric_limits<double>::infinity();
  return bits & sign_bit() ? -result : result;
}

uint32_t small_float_reference::nan() const {
  return has_infinity_ ? finite_count() + (1u << (fraction_bits_ - 1)) : finite_count();
}

uint32_t small_float_reference::nearest(double value) const {
  if (std::isnan(value))
    return nan();
  const double magnitude = std::abs(value);
  uint32_t bits = finite_count(); // infinity, or NaN
  if (magnitude < numbers_.back()) {
    const auto above = std::upper_bound(numbers_.begin(), numbers_.end(), magnitude);
    bits = static_cast<uint32_t>(above - numbers_.begin()) - 1;
    const double middle = (numbers_[bits] + numbers_[bits + 1]) / 2;
    if (magnitude > middle || (magnitude == middle && bits % 2 == 1))
      ++bits;
  }
  if (bits == finite_count() && !has_infinity_)
    return nan();
  return std::signbit(value) ? bits | sign_bit() : bits;
}

} // namespace ringmaster::test
