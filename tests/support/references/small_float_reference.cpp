#include "tests/support/references/small_float_reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ringmaster::test {

small_float_reference::small_float_reference(int exponent_bits, int fraction_bits, bool has_infinity)
  : exponent_bits_(exponent_bits), fraction_bits_(fraction_bits), has_infinity_(has_infinity) {
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
