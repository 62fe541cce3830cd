#pragma once

#include <cstdint>
#include <vector>

namespace ringmaster::test {

/// The meaning of a small float, number by number: slow, and written from the formats' definitions alone.
class small_float_reference {
public:
  /// Where there is no infinity, exponents of ones only are ordinary numbers, but for the largest, which is NaN.
  small_float_reference(int exponent_bits, int fraction_bits, bool has_infinity);

  /// Of a format of runtime/reduction/small_floats.hpp, kept for all tests.
  template <class Format>
  static const small_float_reference& of() {
    static const small_float_reference result{Format::exponent_bits, Format::fraction_bits, Format::has_infinity};
    return result;
  }

  double value(uint32_t bits) const;
  /// The encoding nearest to `value`, ties to even; the positive quiet NaN for NaN, and for what e4m3 has not.
  uint32_t nearest(double value) const;

  uint32_t encodings() const { return 1u << (1 + exponent_bits_ + fraction_bits_); }
  uint32_t sign_bit() const { return encodings() / 2; }
  /// How many encodings, from 0 on, are finite and not negative.
  uint32_t finite_count() const { return static_cast<uint32_t>(numbers_.size()) - 1; }
  uint32_t nan() const;
  /// Of finite_count() encodings, and the number that would come next if there were larger exponents.
  const std::vector<double>& numbers() const { return numbers_; }

private:
  int exponent_bits_;
  int fraction_bits_;
  bool has_infinity_;
  std::vector<double> numbers_;
};

} // namespace ringmaster::test
