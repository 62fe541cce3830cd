#pragma once

#include <ringmaster/collectives.hpp>

#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <type_traits>

namespace ringmaster {

/// Inputs of a mean: from each of `count` buffers the elements from `first` on.
struct mean_inputs {
  const std::byte* const* inputs = nullptr; ///< `count` buffers of elements, which need not be aligned.
  size_t count = 0;                         ///< Buffers.
  uint64_t first = 0;                       ///< The element of each buffer at which it starts.
  uint32_t divisor = 1;                     ///< The number of ranks, above 0.
};

} // namespace ringmaster

namespace RINGMASTER_API {

/// A datatype of your own: the size of an element, and loops over elements. `define_datatype` makes it of a C++ type.
///
/// A loop computes `count` elements, which need not be aligned; `out` may be an input. Several threads call it at once;
/// it must not throw. A loop that is null makes the reductions invalid that need it: collectives with them return
/// invalid_argument. Without any loop, elements can be copied, and reduced by a `register_reduce_op`.
struct datatype_definition {
  /// out[i] = a[i] op b[i].
  using pair_loop = void (*)(const std::byte* a, const std::byte* b, std::byte* out, uint64_t count);

  datatype number{};        ///< From 100 to 255, which the library leaves to programs; the same in every process.
  std::string_view name{};  ///< For command lines and logs; must outlive the program.
  size_t element_bytes = 0; ///< 1, 2, 4 or 8.
  /// Sums and products are rounded, as those of floats. A deterministic communicator adds them in rank order.
  bool rounds = false;
  int64_t least = 0; ///< Without `rounds`: the smallest value, for messages.
  uint64_t most = 0; ///< Without `rounds`: the largest value, for messages.

  pair_loop sum = nullptr;  ///< reduce_op::sum; avg and premul_sum need it, too.
  pair_loop prod = nullptr; ///< reduce_op::prod.
  pair_loop min = nullptr;  ///< reduce_op::min.
  pair_loop max = nullptr;  ///< reduce_op::max.
  /// reduce_op::avg: out[i] = in[i] / divisor, which is the number of ranks.
  void (*divide)(const std::byte* in, std::byte* out, uint64_t count, uint32_t divisor) = nullptr;
  /// reduce_op::avg of inputs that are available at the same time: out[i] = the mean of in[first + i] of all inputs,
  /// added in a wider type, so that no sum is too large. Null: `sum` and `divide`.
  void (*mean)(const mean_inputs& from, std::byte* out, uint64_t count) = nullptr;
  /// reduce_op::premul_sum: out[i] = in[i] * *factor, an element.
  void (*scale)(const std::byte* in, std::byte* out, uint64_t count, const std::byte* factor) = nullptr;
  /// Stores a number as an element, here a factor of premul_sum. Returns whether the number is one of the datatype's:
  /// others are refused. `scale` needs it.
  bool (*store)(double number, std::byte* to) = nullptr;
};

/// Registers a datatype: collectives, clusters, simulations and logs then treat it as a built-in one. Call it when the
/// program starts, before other calls, in every process of a cluster, with the same definition. Errors:
/// invalid_argument for a name or number that is empty, taken or above 255, for another size than 1, 2, 4 or 8, and for
/// `divide`, `mean` or `scale` without the loops that they need. Not thread-safe.
expected<void> register_datatype(const datatype_definition& added);

} // namespace RINGMASTER_API

namespace ringmaster::detail {

template <class T>
T element_at(const std::byte* from, uint64_t index) {
  T result;
  std::memcpy(&result, from + index * sizeof(T), sizeof(T));
  return result;
}

template <class T>
void store_element(std::byte* to, uint64_t index, const T& value) {
  std::memcpy(to + index * sizeof(T), &value, sizeof(T));
}

template <class T, class Combine>
void combine_elements(const std::byte* a, const std::byte* b, std::byte* out, uint64_t count, const Combine& combine) {
  for (uint64_t i = 0; i < count; ++i)
    store_element<T>(out, i, combine(element_at<T>(a, i), element_at<T>(b, i)));
}

template <class T, class Combine>
void pair_loop(const std::byte* a, const std::byte* b, std::byte* out, uint64_t count) {
  combine_elements<T>(a, b, out, count, Combine{});
}

/// Integers are computed unsigned and never as int: they wrap around.
template <class T>
using wrapping = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T>
struct sum_of_two {
  T operator()(const T& a, const T& b) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<wrapping<T>>(a) + static_cast<wrapping<T>>(b));
    else
      return a + b;
  }
};

template <class T>
struct product_of_two {
  T operator()(const T& a, const T& b) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<wrapping<T>>(a) * static_cast<wrapping<T>>(b));
    else
      return a * b;
  }
};

template <class T>
struct smaller_of_two {
  T operator()(const T& a, const T& b) const { return b < a ? b : a; }
};

template <class T>
struct larger_of_two {
  T operator()(const T& a, const T& b) const { return a < b ? b : a; }
};

template <class T>
void divide_loop(const std::byte* in, std::byte* out, uint64_t count, uint32_t divisor) {
  using quotient = std::conditional_t<std::is_integral_v<T>, std::conditional_t<sizeof(T) == 8, T, int64_t>, T>;
  for (uint64_t i = 0; i < count; ++i)
    store_element(out, i, static_cast<T>(static_cast<quotient>(element_at<T>(in, i)) / static_cast<quotient>(divisor)));
}

template <class T>
void scale_loop(const std::byte* in, std::byte* out, uint64_t count, const std::byte* factor) {
  for (uint64_t i = 0; i < count; ++i)
    store_element<T>(out, i, product_of_two<T>{}(element_at<T>(in, i), element_at<T>(factor, 0)));
}

template <std::integral T>
void mean_loop(const mean_inputs& from, std::byte* out, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    int64_t sum = 0; // of 2^31 ranks at least
    for (size_t k = 0; k < from.count; ++k)
      sum += element_at<T>(from.inputs[k], from.first + i);
    store_element(out, i, static_cast<T>(sum / static_cast<int64_t>(from.divisor)));
  }
}

/// Not by its members: an aggregate's first one may mean anything.
template <class T>
concept converts_from_double = std::is_constructible_v<T, double> && !std::is_aggregate_v<T>;

template <class T>
bool store_number(double number, std::byte* to) {
  if constexpr (std::is_integral_v<T>) {
    using limits = std::numeric_limits<T>;
    // The least value is 0 or a power of two, and one above the largest is: both are exact.
    const bool fits = number >= static_cast<double>(limits::lowest()) && number < std::ldexp(1.0, limits::digits);
    store_element(to, 0, fits ? static_cast<T>(number) : T{0});
    return fits && number == std::trunc(number);
  } else {
    store_element(to, 0, static_cast<T>(number));
    return std::isfinite(number);
  }
}

} // namespace ringmaster::detail

namespace RINGMASTER_API {

/// The definition of a trivially copyable C++ type of 1, 2, 4 or 8 bytes with the number `datatype_of<T>`, which a
/// program specializes:
///
///     template <>
///     constexpr ringmaster::datatype ringmaster::datatype_of<int16_t>() { return ringmaster::datatype{100}; }
///     ...
///     ringmaster::register_datatype(ringmaster::define_datatype<int16_t>("int16")).value();
///
/// Loops use the type's operators, and are null for those that it does not have: `+` for sums, `*` for products, `<`
/// for the minimum and maximum; with a conversion from double also `/` for averages and `*` for factors. Integers wrap
/// around, and their averages are exact and truncate toward zero.
template <class T>
datatype_definition define_datatype(std::string_view name) {
  static_assert(std::is_trivially_copyable_v<T>);
  datatype_definition result;
  result.number = datatype_of<T>();
  result.name = name;
  result.element_bytes = sizeof(T);
  result.rounds = !std::numeric_limits<T>::is_integer;
  if constexpr (std::is_integral_v<T>) {
    result.least = static_cast<int64_t>(std::numeric_limits<T>::lowest());
    result.most = static_cast<uint64_t>(std::numeric_limits<T>::max());
    if constexpr (sizeof(T) < 8)
      result.mean = detail::mean_loop<T>;
  }
  if constexpr (requires(T x) { static_cast<T>(x + x); })
    result.sum = detail::pair_loop<T, detail::sum_of_two<T>>;
  if constexpr (requires(T x) { static_cast<T>(x * x); })
    result.prod = detail::pair_loop<T, detail::product_of_two<T>>;
  if constexpr (requires(T x) { static_cast<bool>(x < x); }) {
    result.min = detail::pair_loop<T, detail::smaller_of_two<T>>;
    result.max = detail::pair_loop<T, detail::larger_of_two<T>>;
  }
  if constexpr (detail::converts_from_double<T>) {
    result.store = detail::store_number<T>;
    if constexpr (
      requires(T x) { static_cast<T>(x + x); } && requires(T x) { static_cast<T>(x / x); })
      result.divide = detail::divide_loop<T>;
    if constexpr (
      requires(T x) { static_cast<T>(x + x); } && requires(T x) { static_cast<T>(x * x); })
      result.scale = detail::scale_loop<T>;
  }
  return result;
}

} // namespace RINGMASTER_API
