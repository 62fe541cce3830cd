#include "runtime/reduction/small_floats.hpp"

#include "runtime/reduction/reduction_kernels.hpp"
#include "tests/support/references/element.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

using namespace ringmaster;
using test::small_float_reference;

namespace {

template <class Format>
constexpr proto::DataType type_of = test::number_of<test::stored<Format>>();

/// Everything at which rounding changes its mind: each number, the middle to the next one, and what float32 has right
/// below and above; then the specials, and floats of random bits.
std::vector<float> hard_floats(const small_float_reference& reference, uint64_t seed) {
  std::vector<float> result{0.0f,
                            std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::max(),
                            std::numeric_limits<float>::denorm_min(),
                            std::numeric_limits<float>::min(),
                            std::numeric_limits<float>::quiet_NaN(),
                            std::bit_cast<float>(0x7f800001u),
                            std::bit_cast<float>(0x7fffffffu)};
  const auto& numbers = reference.numbers();
  for (size_t i = 0; i + 1 < numbers.size(); ++i)
    for (double x : {numbers[i], (numbers[i] + numbers[i + 1]) / 2}) {
      const auto exact = static_cast<float>(x);
      result.insert(result.end(), {exact, std::nextafter(exact, 0.0f), std::nextafter(exact, INFINITY)});
    }
  const auto count = result.size();
  for (size_t i = 0; i < count; ++i)
    result.push_back(-result[i]);
  std::mt19937_64 random{seed};
  for (int i = 0; i < 500'000; ++i)
    result.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  // Of ordinary size, where random bits rarely are.
  std::uniform_real_distribution<float> ordinary{-20, 20};
  for (int i = 0; i < 500'000; ++i)
    result.push_back(std::exp2(ordinary(random)));
  return result;
}

template <class T>
const std::byte* bytes_of(const std::vector<T>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

template <class T>
std::byte* bytes_of(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

} // namespace

TEST_CASE_TEMPLATE("small floats: every encoding means what its format says, and comes back", Format, float16, bfloat16,
                   float8_e4m3, float8_e5m2) {
  using bits_type = typename Format::bits_type;
  const auto& reference = small_float_reference::of<Format>();
  REQUIRE(Format::nan == reference.nan());
  uint32_t wrong = 0;
  uint32_t nans = 0;
  for (uint32_t bits = 0; bits < reference.encodings(); ++bits) {
    const float value = Format::decode(static_cast<bits_type>(bits));
    const double right = reference.value(bits);
    const auto back = Format::encode(value);
    if (std::isnan(right)) {
      wrong += !std::isnan(value) || back != Format::nan;
      ++nans;
    } else {
      wrong += value != right || std::signbit(value) != std::signbit(right) || back != bits;
    }
  }
  CHECK(wrong == 0);
  const uint32_t finite = reference.finite_count();
  const bool has_infinity = std::isinf(reference.value(finite));
  CHECK(nans == reference.encodings() - 2 * finite - (has_infinity ? 2 : 0));
}

TEST_CASE_TEMPLATE("small floats: float32 is rounded to the nearest, ties to even, by every instruction set", Format,
                   float16, bfloat16, float8_e4m3, float8_e5m2) {
  using bits_type = typename Format::bits_type;
  const auto& reference = small_float_reference::of<Format>();
  const auto values = hard_floats(reference, 42);
  std::vector<bits_type> right;
  for (float x : values)
    right.push_back(static_cast<bits_type>(reference.nearest(x)));
  for (auto set : supported_instruction_sets()) {
    std::vector<bits_type> encoded(values.size());
    datatype_kernels_for(type_of<Format>, set).encode(bytes_of(values), bytes_of(encoded), values.size());
    size_t i = 0;
    while (i < values.size() && encoded[i] == right[i])
      ++i;
    CAPTURE(std::string{name_of(set)});
    CHECK_MESSAGE(i == values.size(), values[i], " gave ", encoded[i], " and not ", right[i]);
  }
  size_t wrong = 0;
  for (size_t i = 0; i < values.size(); ++i)
    wrong += Format::encode(values[i]) != right[i];
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("small floats: every instruction set decodes alike", Format, float16, bfloat16, float8_e4m3,
                   float8_e5m2) {
  using bits_type = typename Format::bits_type;
  const uint32_t count = small_float_reference::of<Format>().encodings();
  std::vector<bits_type> encodings(count);
  for (uint32_t bits = 0; bits < count; ++bits)
    encodings[bits] = static_cast<bits_type>(bits);
  for (auto set : supported_instruction_sets()) {
    std::vector<float> decoded(count);
    datatype_kernels_for(type_of<Format>, set).decode(bytes_of(encodings), bytes_of(decoded), count);
    size_t wrong = 0;
    for (uint32_t bits = 0; bits < count; ++bits) {
      const float right = Format::decode(encodings[bits]);
      wrong += std::isnan(right) ? !std::isnan(decoded[bits])
                                 : std::bit_cast<uint32_t>(decoded[bits]) != std::bit_cast<uint32_t>(right);
    }
    CAPTURE(std::string{name_of(set)});
    CHECK(wrong == 0);
  }
}

TEST_CASE("small floats: what is too large becomes infinity, or NaN where there is none") {
  CHECK(float16::encode(65519.0f) == 0x7bff);
  CHECK(float16::encode(65520.0f) == 0x7c00); // halfway to what would be 65536
  CHECK(float16::encode(-1e30f) == 0xfc00);
  CHECK(bfloat16::encode(std::numeric_limits<float>::max()) == 0x7f80);
  CHECK(float8_e5m2::encode(57344.0f) == 0x7b);
  CHECK(float8_e5m2::encode(61440.0f) == 0x7c);
  CHECK(float8_e4m3::encode(464.0f) == 0x7e); // halfway, and 448 is the even one
  CHECK(float8_e4m3::encode(-464.0f) == 0xfe);
  CHECK(float8_e4m3::encode(465.0f) == 0x7f);
  CHECK(float8_e4m3::encode(-465.0f) == 0x7f);
  CHECK(float8_e4m3::encode(INFINITY) == 0x7f);
}

TEST_CASE_TEMPLATE("small floats: a double is rounded once, by way of rounding to odd", Format, float16, bfloat16,
                   float8_e4m3, float8_e5m2) {
  const auto& reference = small_float_reference::of<Format>();
  const auto& numbers = reference.numbers();
  std::vector<double> values{0.0, 1e300, -1e300, 1e-300, 5e-324, std::ldexp(1.0, 128), INFINITY, 1 + 1e-15};
  for (size_t i = 0; i + 1 < numbers.size(); ++i) {
    const double middle = (numbers[i] + numbers[i + 1]) / 2;
    values.insert(values.end(), {middle, std::nextafter(middle, 0.0), std::nextafter(middle, INFINITY)});
  }
  size_t wrong = 0;
  for (double x : values)
    for (double value : {x, -x})
      wrong += Format::encode(rounded_to_odd(value)) != reference.nearest(value);
  CHECK(wrong == 0);
  CHECK(std::isnan(rounded_to_odd(std::numeric_limits<double>::quiet_NaN())));
}
