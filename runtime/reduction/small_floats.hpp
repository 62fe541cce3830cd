#pragma once

#include <bit>
#include <cstdint>

// The floating-point formats narrower than float32, and their conversions from and to it. No branches, so that loops
// over them become vector instructions; what is always_inline must be for that, see runtime/reduction/compiled_for.hpp.

namespace ringmaster {

/// A format of a sign, `ExponentBits` and the rest of `Bits` as the significand's fraction, subnormals included.
/// With infinities it is as IEEE 754 has it. Without, it is as in Micikevicius et al., "FP8 Formats for Deep Learning",
/// 2022: exponents of ones only are ordinary numbers, except that the largest is the one NaN.
template <class Bits, int ExponentBits, bool HasInfinity>
struct small_float {
  using bits_type = Bits;
  static constexpr int total_bits = 8 * sizeof(Bits);
  static constexpr int exponent_bits = ExponentBits;
  static constexpr int fraction_bits = total_bits - 1 - ExponentBits;
  static constexpr bool has_infinity = HasInfinity;
  static constexpr int bias = (1 << (ExponentBits - 1)) - 1;
  static constexpr uint32_t magnitude_mask = (1u << (total_bits - 1)) - 1;
  static constexpr uint32_t infinity = ((1u << ExponentBits) - 1) << fraction_bits; ///< where there is one
  /// Of the many NaNs the one that conversions make: positive and quiet.
  static constexpr Bits nan = HasInfinity ? infinity | 1u << (fraction_bits - 1) : magnitude_mask;

  /// Exact; every NaN becomes a NaN.
  [[gnu::always_inline]] static inline float decode(Bits bits) {
    const uint32_t sign = (uint32_t{bits} & ~magnitude_mask) << (32 - total_bits);
    const auto magnitude = static_cast<int32_t>((bits & magnitude_mask) << shift);
    // Subnormals are fraction * 2^(1 - bias - fraction_bits): put below the leading bit of a float32 with exponent
    // 1 - bias, which is then taken away.
    const float leading = std::bit_cast<float>(least_normal);
    const float subnormal = std::bit_cast<float>(magnitude + least_normal) - leading;
    const int32_t normal = magnitude + ((float32_bias - bias) << float32_fraction_bits);
    int32_t value = magnitude < 1 << float32_fraction_bits ? std::bit_cast<int32_t>(subnormal) : normal;
    if constexpr (HasInfinity) // its exponent of ones becomes float32's
      value = magnitude >= static_cast<int32_t>(infinity << shift) ? magnitude | float32_infinity : value;
    else
      value = magnitude == static_cast<int32_t>(magnitude_mask << shift) ? float32_nan : value;
    return std::bit_cast<float>(static_cast<uint32_t>(value) | sign);
  }

  /// Rounds to the nearest, ties to even. What is too large after rounding becomes infinity, or NaN in a format that
  /// has none, as does infinity itself. A NaN becomes `nan`.
  [[gnu::always_inline]] static inline Bits encode(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    const auto magnitude = static_cast<int32_t>(bits & 0x7fffffffu);
    // Adding a float32 whose last fraction bit is worth as much as a subnormal's lets the processor round to it.
    const float subnormal = std::bit_cast<float>(magnitude) + std::bit_cast<float>(subnormal_unit);
    // Half a unit less a bit, and that bit where the result would be odd otherwise; a carry goes into the exponent.
    const int32_t odd = (magnitude >> shift) & 1;
    const int32_t normal = (magnitude - ((float32_bias - bias) << float32_fraction_bits) + (1 << (shift - 1)) - 1 + odd)
                           >> shift;
    int32_t result = magnitude < least_normal ? std::bit_cast<int32_t>(subnormal) - subnormal_unit : normal;
    result |= static_cast<int32_t>(bits >> (32 - total_bits)) & static_cast<int32_t>(~magnitude_mask);
    if constexpr (HasInfinity) {
      const auto signed_infinity = static_cast<int32_t>(infinity | (bits >> (32 - total_bits) & ~magnitude_mask));
      result = magnitude >= overflow ? signed_infinity : result;
      result = magnitude > float32_infinity ? nan : result;
    } else {
      result = magnitude > overflow ? nan : result;
    }
    return static_cast<Bits>(result);
  }

private:
  static constexpr int float32_bias = 127;
  static constexpr int float32_fraction_bits = 23;
  static constexpr int32_t float32_infinity = 0x7f800000;
  static constexpr int32_t float32_nan = 0x7fc00000;
  static constexpr int shift = float32_fraction_bits - fraction_bits;
  /// The least normal number, 2^(1 - bias), as a float32.
  static constexpr int32_t least_normal = (float32_bias + 1 - bias) << float32_fraction_bits;
  static constexpr int32_t subnormal_unit = (float32_bias + 1 - bias + shift) << float32_fraction_bits;
  /// The largest number of a format without infinity, in float32's exponent and its own fraction.
  static constexpr int32_t largest = ((float32_bias - bias) << fraction_bits) + int32_t{magnitude_mask} - 1;
  /// With infinities: 2^(bias + 1), from which on nothing can be right but infinity; just below, rounding carries
  /// into it by itself. Without: halfway between the largest number and NaN, which ties to the former, whose fraction
  /// ends in 0.
  static constexpr int32_t overflow = HasInfinity ? (float32_bias + bias + 1) << float32_fraction_bits
                                                  : largest * (1 << shift) + (1 << (shift - 1));
};

/// The upper half of a float32: the same exponents, so nothing but the fraction is rounded.
struct bfloat16 {
  using bits_type = uint16_t;
  static constexpr int exponent_bits = 8;
  static constexpr int fraction_bits = 7;
  static constexpr bool has_infinity = true;
  static constexpr uint16_t nan = 0x7fc0;

  [[gnu::always_inline]] static inline float decode(uint16_t bits) {
    return std::bit_cast<float>(uint32_t{bits} << 16);
  }

  [[gnu::always_inline]] static inline uint16_t encode(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    return static_cast<uint16_t>(value == value ? rounded : nan);
  }
};

using float16 = small_float<uint16_t, 5, true>;     ///< IEEE 754 binary16, largest 65504
using float8_e4m3 = small_float<uint8_t, 4, false>; ///< largest 448
using float8_e5m2 = small_float<uint8_t, 5, true>;  ///< largest 57344

/// `value` as a float32, rounded to odd: inexact results get an odd last bit, so that rounding them again to a small
/// float gives what rounding `value` at once would have (Boldo and Melquiond, "Emulation of FMA and Correctly Rounded
/// Sums: Proved Algorithms Using Rounding to Odd", 2008). A NaN stays one.
inline float rounded_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || value != value)
    return nearest;
  auto bits = std::bit_cast<uint32_t>(nearest);
  const auto magnitude = [](double x) { return x < 0 ? -x : x; };
  if (magnitude(nearest) > magnitude(value)) // beyond float32, too: infinity becomes the largest, which is odd
    --bits;
  return std::bit_cast<float>(bits | 1);
}

} // namespace ringmaster
