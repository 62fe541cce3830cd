#pragma once

#include "runtime/reduction/compiled_for.hpp"
#include "runtime/reduction/reduction_kernels.hpp"

#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

// What runtime/reduction/reduction_kernels_*.cpp compile for their datatypes. Everything is always_inline, see
// runtime/reduction/compiled_for.hpp. Device addresses are arbitrary, so elements are loaded and stored as bytes; the
// compiler makes unaligned vector instructions of that.

namespace ringmaster {

template <class T>
[[gnu::always_inline]] inline T load(const std::byte* from, uint64_t index) {
  T value;
  std::memcpy(&value, from + index * sizeof value, sizeof value);
  return value;
}

template <class T>
[[gnu::always_inline]] inline void store(std::byte* to, uint64_t index, T value) {
  std::memcpy(to + index * sizeof value, &value, sizeof value);
}

/// One NaN for all. Which of two NaNs an addition passes on depends on the order into which the compiler puts the
/// operands, and the sign of a fresh one on the processor.
template <class T>
[[gnu::always_inline]] inline T one_nan(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return value == value ? value : std::numeric_limits<T>::quiet_NaN();
  else
    return value;
}

/// Where integers are added and multiplied: unsigned and never promoted to int, so that they wrap around.
template <class T>
using wrapping = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

struct sum {
  template <class T>
  [[gnu::always_inline]] static inline T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
      return a + b;
    else
      return static_cast<T>(static_cast<wrapping<T>>(a) + static_cast<wrapping<T>>(b));
  }
};

struct product {
  template <class T>
  [[gnu::always_inline]] static inline T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
      return a * b;
    else
      return static_cast<T>(static_cast<wrapping<T>>(a) * static_cast<wrapping<T>>(b));
  }
};

/// The smaller or the larger of two. In floating point -0 is smaller than +0, so that the order of a reduction does not
/// show in its result. A comparison that fails picks the second operand, which is what one instruction does; so where
/// the two orders of the operands differ in what they pick, these are two zeros, whose sign bits decide, or one is a
/// NaN, which bits or'ed to it leave one.
template <bool Smaller>
struct extreme {
  template <class T>
  [[gnu::always_inline]] static inline T apply(T a, T b) {
    const T picked = (Smaller ? a < b : a > b) ? a : b;
    if constexpr (std::is_floating_point_v<T>) {
      using bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
      const auto left = std::bit_cast<bits>(picked);
      const auto right = std::bit_cast<bits>((Smaller ? b < a : b > a) ? b : a);
      constexpr bits sign = bits{1} << (8 * sizeof(bits) - 1);
      return std::bit_cast<T>(Smaller ? left | right : (left & right) | ((left | right) & ~sign));
    } else {
      return picked;
    }
  }
};

template <class T, class Op>
struct pair_loop {
  [[gnu::always_inline]] static inline void run(const std::byte* a, const std::byte* b, std::byte* out,
                                                uint64_t count) {
    // `out` is `a`, `b` or apart from both: no element depends on another's result, which the compiler cannot see.
#pragma GCC ivdep
    for (uint64_t i = 0; i < count; ++i)
      store(out, i, one_nan(Op::apply(load<T>(a, i), load<T>(b, i))));
  }
};

/// `N` inputs at once, each element in a register from the first to the last. No operation turns a NaN into a number,
/// so they are made one in the end.
template <class T, class Op, size_t N, bool Extend>
struct accumulation_loop {
  [[gnu::always_inline]] static inline void run(const std::byte* const* inputs, uint64_t first,
                                                const std::byte* accumulated, std::byte* out, uint64_t count) {
    const std::byte* from[N];
    for (size_t n = 0; n < N; ++n)
      from[n] = inputs[n] + first * sizeof(T);
#pragma GCC ivdep
    for (uint64_t i = 0; i < count; ++i) {
      T value = load<T>(from[0], i);
      if constexpr (Extend)
        value = Op::apply(load<T>(accumulated, i), value);
#pragma GCC unroll 8
      for (size_t n = 1; n < N; ++n)
        value = Op::apply(value, load<T>(from[n], i));
      store(out, i, one_nan(value));
    }
  }
};

template <class T, class Op>
operation_kernels compiled_operation(instruction_set set) {
  return {compiled<pair_loop<T, Op>>::at(set),
          compiled<accumulation_loop<T, Op, 2, false>>::at(set),
          compiled<accumulation_loop<T, Op, 4, false>>::at(set),
          compiled<accumulation_loop<T, Op, 8, false>>::at(set),
          compiled<accumulation_loop<T, Op, 1, true>>::at(set),
          compiled<accumulation_loop<T, Op, 2, true>>::at(set),
          compiled<accumulation_loop<T, Op, 4, true>>::at(set)};
}

/// `Modular` is the type for sums and products, which of wrapping integers have the same bits signed and unsigned.
template <class T, class Modular = T>
operation_kernels compiled_operation(gpu_sim::ReduceOp op, instruction_set set) {
  switch (op) {
    case gpu_sim::SUM:
    case gpu_sim::AVG:
    case gpu_sim::PREMUL_SUM: return compiled_operation<Modular, sum>(set);
    case gpu_sim::PROD: return compiled_operation<Modular, product>(set);
    case gpu_sim::MIN: return compiled_operation<T, extreme<true>>(set);
    case gpu_sim::MAX: return compiled_operation<T, extreme<false>>(set);
    default: return {};
  }
}

/// `Quotient` is the type to divide in.
template <class T, class Quotient>
struct division_loop {
  [[gnu::always_inline]] static inline void run(const std::byte* in, std::byte* out, uint64_t count, uint32_t divisor) {
    const auto by = static_cast<Quotient>(divisor);
#pragma GCC ivdep
    for (uint64_t i = 0; i < count; ++i)
      store(out, i, one_nan(static_cast<T>(static_cast<Quotient>(load<T>(in, i)) / by)));
  }
};

template <class T>
struct scaling_loop {
  [[gnu::always_inline]] static inline void run(const std::byte* in, std::byte* out, uint64_t count,
                                                const std::byte* factor) {
    const T by = load<T>(factor, 0);
#pragma GCC ivdep
    for (uint64_t i = 0; i < count; ++i)
      store(out, i, one_nan(product::apply(load<T>(in, i), by)));
  }
};

/// Holds the sum of 2^23 integers or more.
template <class T>
using wide_sum = std::conditional_t<sizeof(T) == 1, int32_t, std::conditional_t<sizeof(T) == 8, __int128, int64_t>>;

template <class T>
struct mean_loop {
  [[gnu::always_inline]] static inline void run(const mean_inputs& from, std::byte* out, uint64_t count) {
    constexpr uint64_t piece = 256;
    wide_sum<T> sums[piece];
    for (uint64_t done = 0; done < count; done += piece) {
      const uint64_t n = count - done < piece ? count - done : piece;
      for (uint64_t i = 0; i < n; ++i)
        sums[i] = 0;
      for (size_t k = 0; k < from.count; ++k) {
        const auto* input = from.inputs[k] + (from.first + done) * sizeof(T);
        for (uint64_t i = 0; i < n; ++i)
          sums[i] += load<T>(input, i);
      }
      for (uint64_t i = 0; i < n; ++i)
        store(out, done + i, static_cast<T>(quotient(sums[i], from.divisor)));
    }
  }

  template <class Sum>
  [[gnu::always_inline]] static inline Sum quotient(Sum sum, uint32_t divisor) {
    if constexpr (sizeof(Sum) == 16) // most sums need no division of 128 bits, which is a function
      if (sum == static_cast<int64_t>(sum))
        return static_cast<int64_t>(sum) / static_cast<int64_t>(divisor);
    return sum / static_cast<Sum>(divisor);
  }
};

template <class T>
[[gnu::always_inline]] inline T magnitude_of(T value) {
  return value < 0 ? -value : value;
}

template <class T>
struct finite_loop {
  [[gnu::always_inline]] static inline void run(const std::byte* values, uint64_t count, bool* all) {
    uint32_t others = 0;
    for (uint64_t i = 0; i < count; ++i)
      others |= magnitude_of(load<T>(values, i)) <= std::numeric_limits<T>::max() ? 0 : 1;
    if (others != 0)
      *all = false;
  }
};

template <class T>
struct scaled_sum_loop {
  [[gnu::always_inline]] static inline void run(const scaled_operands& of, std::byte* out, uint64_t count) {
    const auto* a = of.a;
    const auto* b = of.b;
    const T a_scale = static_cast<T>(of.a_scale), b_scale = static_cast<T>(of.b_scale);
#pragma GCC ivdep
    for (uint64_t i = 0; i < count; ++i) {
      const T left = load<T>(a, i) * a_scale; // a power of two: exact, but for subnormals
      const T right = load<T>(b, i) * b_scale;
      store(out, i, one_nan(left + right));
    }
  }
};

template <class T>
struct unscaling_loop {
  [[gnu::always_inline]] static inline void run(const std::byte* in, std::byte* out, uint64_t count, double divisor) {
    const T by = static_cast<T>(divisor);
#pragma GCC ivdep
    for (uint64_t i = 0; i < count; ++i)
      store(out, i, one_nan(load<T>(in, i) / by));
  }
};

template <class T, class Quotient = T>
datatype_kernels compiled_datatype(instruction_set set) {
  datatype_kernels result{.element_bytes = sizeof(T),
                          .wide_bytes = sizeof(T),
                          .divide = compiled<division_loop<T, Quotient>>::at(set),
                          .scale = compiled<scaling_loop<T>>::at(set)};
  if constexpr (std::is_floating_point_v<T>) {
    result.check_finite = compiled<finite_loop<T>>::at(set);
    result.add_scaled = compiled<scaled_sum_loop<T>>::at(set);
    result.unscale = compiled<unscaling_loop<T>>::at(set);
  } else {
    result.mean = compiled<mean_loop<T>>::at(set);
  }
  return result;
}

} // namespace ringmaster
