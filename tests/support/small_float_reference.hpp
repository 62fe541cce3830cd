#pragma once

#include "messages/types.pb.h"

#include <cstdint>
#include <vector>

namespace ringmaster::test {

/// The meaning of a small float, number by number: slow, and written from the formats' definitions alone.
class small_float_reference {
public:
  /// float16, bfloat16, float8_e4m3 or float8_e5m2.
  explicit small_float_reference(proto::DataType type);

  /// Kept for all tests.
  static const small_float_reference& of(proto::DataType type);

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
  bool has_infinity_ = true;
  std::vector<double> numbers_;
};

} // namespace ringmaster::test
