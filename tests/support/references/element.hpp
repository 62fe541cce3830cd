#pragma once

#include "messages/gpu_sim.pb.h"
#include "runtime/reduction/datatypes.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/reduction/small_floats.hpp"
#include "tests/support/references/small_float_reference.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

// Elements of every datatype of the table as C++ types, and what reductions should make of them, the plain way.

namespace ringmaster::test {

/// A float narrower than float32, as it is stored.
template <class Format>
struct small {
  typename Format::bits_type bits;
};

/// What an element of the datatypes' table is, as C++ stores it.
template <class Element>
using stored = std::conditional_t<std::is_arithmetic_v<Element>, std::type_identity<Element>,
                                  std::type_identity<small<Element>>>::type;

using half = stored<float16>;
using brain = stored<bfloat16>;
using e4m3 = stored<float8_e4m3>;
using e5m2 = stored<float8_e5m2>;

#define RINGMASTER_ELEMENT(number, name, element) ringmaster::test::stored<element>
#define RINGMASTER_ELEMENTS RINGMASTER_DATATYPES(RINGMASTER_ELEMENT)

/// The number of the datatype whose elements are stored so.
template <class T>
constexpr proto::DataType number_of() {
  struct row {
    proto::DataType number;
    bool is_it;
  };
#define RINGMASTER_ELEMENT_ROW(number, name, element)                                                                  \
  row {                                                                                                                \
    proto::number, std::is_same_v<T, stored<element>>                                                                  \
  }
  for (auto x : {RINGMASTER_DATATYPES(RINGMASTER_ELEMENT_ROW)})
    if (x.is_it)
      return x.number;
  throw "no row of the table has such elements"; // does not compile where a constant is wanted
}

/// How `T` is called, and computed with.
template <class T>
struct element {
  using wide = T;
  static constexpr bool rounds = false;
  static constexpr proto::DataType type = number_of<T>();
  static T decode(T value) { return value; }
  static T encode(T value) { return value; }
  static T of_bits(uint64_t bits) {
    T result;
    std::memcpy(&result, &bits, sizeof result);
    return result;
  }
};

template <class Format>
struct element<small<Format>> {
  using wide = float;
  using bits_type = typename Format::bits_type;
  static constexpr bool rounds = true;
  static constexpr proto::DataType type = number_of<small<Format>>();
  static const small_float_reference& meaning() { return small_float_reference::of<Format>(); }
  static float decode(small<Format> x) { return static_cast<float>(meaning().value(x.bits)); }
  static small<Format> encode(float x) { return {static_cast<bits_type>(meaning().nearest(x))}; }
  static small<Format> of_bits(uint64_t bits) { return {static_cast<bits_type>(bits)}; }
};

constexpr gpu_sim::ReduceOp built_in_ops[] = {gpu_sim::SUM, gpu_sim::PROD, gpu_sim::MIN,
                                              gpu_sim::MAX, gpu_sim::AVG,  gpu_sim::PREMUL_SUM};

/// One step in a type that the processor computes in. Integers in 128 bits, cut off.
template <class T>
T combined(gpu_sim::ReduceOp op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (op == gpu_sim::MIN || op == gpu_sim::MAX)
      return (a < b) == (op == gpu_sim::MIN) ? a : b;
    using wide = unsigned __int128;
    return static_cast<T>(op == gpu_sim::PROD ? static_cast<wide>(a) * static_cast<wide>(b)
                                              : static_cast<wide>(a) + static_cast<wide>(b));
  } else {
    if (std::isnan(a) || std::isnan(b))
      return std::numeric_limits<T>::quiet_NaN();
    if (op == gpu_sim::MIN || op == gpu_sim::MAX) {
      const bool a_smaller = a < b || (a == b && std::signbit(a));
      return a_smaller == (op == gpu_sim::MIN) ? a : b;
    }
    const T result = op == gpu_sim::PROD ? a * b : a + b;
    return std::isnan(result) ? std::numeric_limits<T>::quiet_NaN() : result;
  }
}

template <class T>
T quotient(T value, uint32_t divisor) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<__int128>(value) / divisor);
  } else {
    const T result = value / static_cast<T>(divisor);
    return std::isnan(result) ? std::numeric_limits<T>::quiet_NaN() : result;
  }
}

/// One step on elements as they are stored.
template <class T>
T reference(gpu_sim::ReduceOp op, T a, T b) {
  using e = element<T>;
  return e::encode(combined(op, e::decode(a), e::decode(b)));
}

/// An average, or a sum with factors, whose plain sum is too large: of operands that are scaled down by a power of two.
template <class T>
typename element<T>::wide scaled_chain(const std::vector<T>& values, uint32_t divisor) {
  using e = element<T>;
  using wide = typename e::wide;
  wide scale = 1;
  for (size_t power = 1; power < values.size(); power *= 2)
    scale /= 2;
  wide sum = e::decode(values[0]) * scale;
  for (size_t i = 1; i < values.size(); ++i)
    sum = combined(gpu_sim::SUM, sum, e::decode(values[i]) * scale);
  if (divisor == 0)
    return sum / scale;
  return sum / (static_cast<wide>(divisor) * scale);
}

/// A chain of them without rounding on the way, divided by `divisor` unless that is 0. Averages of integers are exact.
template <class T>
T chained(gpu_sim::ReduceOp op, const std::vector<T>& values, uint32_t divisor) {
  using e = element<T>;
  if constexpr (std::is_integral_v<T>)
    if (divisor != 0) {
      __int128 sum = 0;
      for (auto x : values)
        sum += x;
      return static_cast<T>(sum / static_cast<__int128>(divisor));
    }
  auto result = e::decode(values[0]);
  for (size_t i = 1; i < values.size(); ++i)
    result = combined(op, result, e::decode(values[i]));
  if constexpr (!std::is_integral_v<T>)
    if ((op == gpu_sim::AVG || op == gpu_sim::PREMUL_SUM) && !std::isfinite(result) && values.size() > 1) {
      const auto scaled = scaled_chain(values, divisor);
      return e::encode(std::isnan(scaled) ? std::numeric_limits<typename e::wide>::quiet_NaN() : scaled);
    }
  return e::encode(divisor == 0 ? result : quotient(result, divisor));
}

/// Ordinary values, and at random places those at which arithmetic goes wrong.
template <class T>
std::vector<T> random_values(std::mt19937_64& random, size_t count) {
  using wide = typename element<T>::wide;
  using limits = std::numeric_limits<wide>;
  std::vector<T> special;
  if constexpr (element<T>::rounds)
    for (int i = 0; i < 64; ++i)
      special.push_back(element<T>::of_bits(random()));
  else
    special = {T(0), T(1), T(-1), limits::max(), limits::lowest(), limits::min()};
  if constexpr (std::is_floating_point_v<T>)
    special.insert(special.end(),
                   {-T(0), limits::infinity(), -limits::infinity(), limits::quiet_NaN(), -limits::quiet_NaN(),
                    limits::denorm_min(), static_cast<T>(std::nan("0x12345"))}); // with a payload
  std::vector<T> values(count);
  for (auto& value : values) {
    if (random() % 4 == 0)
      value = special[random() % special.size()];
    else if constexpr (std::is_integral_v<T>)
      value = static_cast<T>(random());
    else
      value = element<T>::encode(static_cast<wide>(std::uniform_real_distribution<double>{-20, 20}(random)));
  }
  return values;
}

/// Values at an address that is `misaligned` bytes off, with bytes before and behind that no one may touch.
template <class T>
class placed_values {
public:
  placed_values(const std::vector<T>& values, size_t misaligned)
    : bytes_(values.size() * sizeof(T) + misaligned + 64, untouched), misaligned_(misaligned), count_(values.size()) {
    if (!values.empty())
      std::memcpy(data(), values.data(), values.size() * sizeof(T));
  }

  std::byte* data() { return bytes_.data() + misaligned_; }

  /// The first element that differs in a bit, or the first past the end where bytes around are not as they were; the
  /// count of elements: none.
  size_t first_difference(const std::vector<T>& right) const {
    for (size_t i = 0; i < right.size(); ++i)
      if (std::memcmp(bytes_.data() + misaligned_ + i * sizeof(T), &right[i], sizeof(T)) != 0)
        return i;
    const auto end = misaligned_ + count_ * sizeof(T);
    for (size_t at = 0; at < bytes_.size(); ++at)
      if ((at < misaligned_ || at >= end) && bytes_[at] != untouched)
        return count_ + 1;
    return count_;
  }

private:
  static constexpr std::byte untouched{0xa5};
  std::vector<std::byte> bytes_;
  size_t misaligned_;
  size_t count_;
};

} // namespace ringmaster::test
