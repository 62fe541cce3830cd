#include "runtime/reduction_kernels.hpp"

#include <bit>
#include <cassert>
#include <cstring>
#include <limits>
#include <type_traits>

namespace ringmaster {

namespace {

// Device addresses are arbitrary, so elements are loaded and stored as bytes; the compiler makes unaligned vector
// instructions of that. What is always_inline must be: only then is it compiled for its caller's instruction set.

template <class T>
[[gnu::always_inline]] inline T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// One NaN for all. Which of two NaNs an addition passes on depends on the order into which the compiler puts the
/// operands, and the sign of a fresh one on the processor.
template <class T>
[[gnu::always_inline]] inline T one_nan(T value) {
  return value == value ? value : std::numeric_limits<T>::quiet_NaN();
}

struct sum {
  template <class T>
  [[gnu::always_inline]] static inline T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
      return one_nan(a + b);
    else
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
  }
};

struct product {
  template <class T>
  [[gnu::always_inline]] static inline T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
      return one_nan(a * b);
    else
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) * static_cast<std::make_unsigned_t<T>>(b));
  }
};

/// The smaller or the larger of two. In floating point -0 is smaller than +0, so that the order of a reduction does not
/// show in its result: two values that compare equal differ in the sign of a zero at most, hence OR is the smaller.
template <bool Smaller>
struct extreme {
  template <class T>
  [[gnu::always_inline]] static inline T apply(T a, T b) {
    const T picked = (Smaller ? a < b : a > b) ? a : b;
    if constexpr (std::is_floating_point_v<T>) {
      using bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
      const auto left = std::bit_cast<bits>(a);
      const auto right = std::bit_cast<bits>(b);
      const T equal = std::bit_cast<T>(Smaller ? left | right : left & right);
      const T value = a == b ? equal : picked;
      const T or_left_nan = a == a ? value : std::numeric_limits<T>::quiet_NaN();
      return b == b ? or_left_nan : std::numeric_limits<T>::quiet_NaN();
    } else {
      return picked;
    }
  }
};

template <class T, class Op>
[[gnu::always_inline]] inline void reduce_all(const std::byte* a, const std::byte* b, std::byte* out,
                                              uint64_t count) {
  // `out` is `a`, `b` or apart from both: no element depends on another's result, which the compiler cannot see.
#pragma GCC ivdep
  for (uint64_t i = 0; i < count; ++i) {
    const T value = Op::apply(load<T>(a + i * sizeof(T)), load<T>(b + i * sizeof(T)));
    std::memcpy(out + i * sizeof(T), &value, sizeof value);
  }
}

template <class T>
[[gnu::always_inline]] inline void divide_all(std::byte* values, uint64_t count, uint32_t divisor) {
  // An int32_t and its divisor are exact in a double, and so is the quotient's whole part; doubles have vectors.
  using wide = std::conditional_t<std::is_same_v<T, int32_t>, double, T>;
  const auto by = static_cast<wide>(divisor);
  for (uint64_t i = 0; i < count; ++i) {
    const auto value = static_cast<T>(static_cast<wide>(load<T>(values + i * sizeof(T))) / by);
    std::memcpy(values + i * sizeof(T), &value, sizeof value);
  }
}

template <class T, class Op>
void reduce_baseline(const std::byte* a, const std::byte* b, std::byte* out, uint64_t count) {
  reduce_all<T, Op>(a, b, out, count);
}

template <class T>
void divide_baseline(std::byte* values, uint64_t count, uint32_t divisor) {
  divide_all<T>(values, count, divisor);
}

#ifdef __x86_64__

// Chosen by hand rather than by target_clones: its resolvers run before a sanitizer has set itself up.
#define RINGMASTER_AVX2 [[gnu::target("avx2")]]
#define RINGMASTER_AVX512 [[gnu::target("avx512f,avx512dq,avx512bw,avx512vl")]]

template <class T, class Op>
RINGMASTER_AVX2 void reduce_avx2(const std::byte* a, const std::byte* b, std::byte* out, uint64_t count) {
  reduce_all<T, Op>(a, b, out, count);
}

template <class T>
RINGMASTER_AVX2 void divide_avx2(std::byte* values, uint64_t count, uint32_t divisor) {
  divide_all<T>(values, count, divisor);
}

template <class T, class Op>
RINGMASTER_AVX512 void reduce_avx512(const std::byte* a, const std::byte* b, std::byte* out, uint64_t count) {
  reduce_all<T, Op>(a, b, out, count);
}

template <class T>
RINGMASTER_AVX512 void divide_avx512(std::byte* values, uint64_t count, uint32_t divisor) {
  divide_all<T>(values, count, divisor);
}

#endif

template <class T, class Op>
reduction_kernel compiled_for(instruction_set set) {
#ifdef __x86_64__
  if (set == instruction_set::avx512)
    return reduce_avx512<T, Op>;
  if (set == instruction_set::avx2)
    return reduce_avx2<T, Op>;
#endif
  assert(set == instruction_set::baseline);
  return reduce_baseline<T, Op>;
}

template <class T>
division_kernel division_compiled_for(instruction_set set) {
#ifdef __x86_64__
  if (set == instruction_set::avx512)
    return divide_avx512<T>;
  if (set == instruction_set::avx2)
    return divide_avx2<T>;
#endif
  assert(set == instruction_set::baseline);
  return divide_baseline<T>;
}

template <class T>
reduction_kernel kernel_of(gpu_sim::ReduceOp op, instruction_set set) {
  switch (op) {
    case gpu_sim::SUM:
    case gpu_sim::AVG: return compiled_for<T, sum>(set);
    case gpu_sim::PROD: return compiled_for<T, product>(set);
    case gpu_sim::MIN: return compiled_for<T, extreme<true>>(set);
    case gpu_sim::MAX: return compiled_for<T, extreme<false>>(set);
    default: return nullptr;
  }
}

std::vector<instruction_set> find_supported() {
  std::vector<instruction_set> sets{instruction_set::baseline};
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2")) {
    sets.push_back(instruction_set::avx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")
        && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
      sets.push_back(instruction_set::avx512);
  }
#endif
  return sets;
}

} // namespace

std::string_view name_of(instruction_set set) {
  switch (set) {
    case instruction_set::baseline: return "baseline";
    case instruction_set::avx2: return "avx2";
    case instruction_set::avx512: return "avx512";
  }
  return "unknown";
}

const std::vector<instruction_set>& supported_instruction_sets() {
  static const auto sets = find_supported();
  return sets;
}

instruction_set best_instruction_set() {
  return supported_instruction_sets().back();
}

reduction_kernel kernel_for(proto::DataType type, gpu_sim::ReduceOp op, instruction_set set) {
  switch (type) {
    case proto::FLOAT64: return kernel_of<double>(op, set);
    case proto::FLOAT32: return kernel_of<float>(op, set);
    case proto::INT32: return kernel_of<int32_t>(op, set);
    case proto::INT64: return kernel_of<int64_t>(op, set);
    default: return nullptr;
  }
}

division_kernel division_for(proto::DataType type, instruction_set set) {
  switch (type) {
    case proto::FLOAT64: return division_compiled_for<double>(set);
    case proto::FLOAT32: return division_compiled_for<float>(set);
    case proto::INT32: return division_compiled_for<int32_t>(set);
    case proto::INT64: return division_compiled_for<int64_t>(set);
    default: return nullptr;
  }
}

} // namespace ringmaster
