// Loops that the compiler makes vectors of, for each of the machine's instruction sets. Products and sums are not
// contracted (-ffp-contract=off), so all of them give the same bits.
#include "runtime/training/layers/matrix_products.hpp"

#include <algorithm>

// A sanitizer cannot run when the dynamic linker asks which of the clones fits.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define RINGMASTER_FOR_EACH_MACHINE [[gnu::target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")]]
#else
#define RINGMASTER_FOR_EACH_MACHINE
#endif

namespace ringmaster::training {

namespace {

constexpr uint64_t rows_at_once = 4;   ///< Of c: a row of b is read once for them.
constexpr uint64_t inner_at_once = 64; ///< Rows of b that stay in the cache meanwhile.
constexpr uint64_t lanes = 16;

template <class T>
[[gnu::always_inline]] inline void add_scaled(T* __restrict to, const T* __restrict from, T factor, uint64_t count) {
  for (uint64_t j = 0; j < count; ++j)
    to[j] += factor * from[j];
}

/// Rows [first, end) of c += a b, of which a's element (i, k) lies at a[i * by_row + k * by_column].
template <class T>
[[gnu::always_inline]] inline void add_products(const T* a, uint64_t by_row, uint64_t by_column, uint64_t inner,
                                                matrix<const T> b, matrix<T> c) {
  for (uint64_t from = 0; from < inner; from += inner_at_once)
    for (uint64_t i = 0; i < c.rows; i += rows_at_once) {
      const auto rows = std::min(rows_at_once, c.rows - i);
      for (uint64_t k = from; k < std::min(from + inner_at_once, inner); ++k)
        for (uint64_t r = 0; r < rows; ++r)
          add_scaled(c.row(i + r), b.row(k), a[(i + r) * by_row + k * by_column], c.columns);
    }
}

template <class T>
[[gnu::always_inline]] inline T dot(const T* a, const T* b, uint64_t count) {
  T sums[lanes] = {};
  uint64_t k = 0;
  for (; k + lanes <= count; k += lanes)
    for (uint64_t l = 0; l < lanes; ++l)
      sums[l] += a[k + l] * b[k + l];
  T rest = 0;
  for (; k < count; ++k)
    rest += a[k] * b[k];
  for (uint64_t half = lanes / 2; half > 0; half /= 2)
    for (uint64_t l = 0; l < half; ++l)
      sums[l] += sums[l + half];
  return sums[0] + rest;
}

template <class T>
[[gnu::always_inline]] inline void all_dots(matrix<const T> a, matrix<const T> b, matrix<T> c) {
  for (uint64_t i = 0; i < c.rows; ++i)
    for (uint64_t j = 0; j < c.columns; ++j)
      c.row(i)[j] = dot(a.row(i), b.row(j), a.columns);
}

// Templates have no clones, so each type has its functions.
#define RINGMASTER_PRODUCTS(T)                                                                                         \
  RINGMASTER_FOR_EACH_MACHINE void add_products_of_##T(const T* a, uint64_t by_row, uint64_t by_column,                \
                                                       uint64_t inner, matrix<const T> b, matrix<T> c) {               \
    add_products<T>(a, by_row, by_column, inner, b, c);                                                                \
  }                                                                                                                    \
  RINGMASTER_FOR_EACH_MACHINE void all_dots_of_##T(matrix<const T> a, matrix<const T> b, matrix<T> c) {                \
    all_dots<T>(a, b, c);                                                                                              \
  }                                                                                                                    \
  void for_type(const T* a, uint64_t by_row, uint64_t by_column, uint64_t inner, matrix<const T> b, matrix<T> c) {     \
    add_products_of_##T(a, by_row, by_column, inner, b, c);                                                            \
  }                                                                                                                    \
  void for_type(matrix<const T> a, matrix<const T> b, matrix<T> c) {                                                   \
    all_dots_of_##T(a, b, c);                                                                                          \
  }

RINGMASTER_PRODUCTS(float)
RINGMASTER_PRODUCTS(double)

template <class T>
void clear(matrix<T> x) {
  for (uint64_t i = 0; i < x.rows; ++i)
    std::fill_n(x.row(i), x.columns, T{});
}

} // namespace

template <class T>
void multiply(matrix<const T> a, matrix<const T> b, matrix<T> c, bool adds) {
  if (!adds)
    clear(c);
  for_type(a.data, a.stride, 1, a.columns, b, c);
}

template <class T>
void multiply_transposed_first(matrix<const T> a, matrix<const T> b, matrix<T> c) {
  clear(c);
  for_type(a.data, 1, a.stride, a.rows, b, c);
}

template <class T>
void multiply_transposed_second(matrix<const T> a, matrix<const T> b, matrix<T> c) {
  for_type(a, b, c);
}

template void multiply(matrix<const float>, matrix<const float>, matrix<float>, bool);
template void multiply(matrix<const double>, matrix<const double>, matrix<double>, bool);
template void multiply_transposed_first(matrix<const float>, matrix<const float>, matrix<float>);
template void multiply_transposed_first(matrix<const double>, matrix<const double>, matrix<double>);
template void multiply_transposed_second(matrix<const float>, matrix<const float>, matrix<float>);
template void multiply_transposed_second(matrix<const double>, matrix<const double>, matrix<double>);

} // namespace ringmaster::training
