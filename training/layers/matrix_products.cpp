// Loops that the compiler makes vectors of, for each of the machine's instruction sets. Products and sums are not
// contracted (-ffp-contract=off), so all of them give the same bits.
#include "training/layers/matrix_products.hpp"

#include "runtime/reduction/compiled_for.hpp"

#include <algorithm>

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
struct all_products {
  [[gnu::always_inline]] static void run(const T* a, uint64_t by_row, uint64_t by_column, uint64_t inner,
                                         matrix<const T> b, matrix<T> c) {
    add_products(a, by_row, by_column, inner, b, c);
  }
};

template <class T>
struct all_dots {
  [[gnu::always_inline]] static void run(matrix<const T> a, matrix<const T> b, matrix<T> c) {
    for (uint64_t i = 0; i < c.rows; ++i)
      for (uint64_t j = 0; j < c.columns; ++j)
        c.row(i)[j] = dot(a.row(i), b.row(j), a.columns);
  }
};

template <class T>
void clear(matrix<T> x) {
  for (uint64_t i = 0; i < x.rows; ++i)
    std::fill_n(x.row(i), x.columns, T{});
}

} // namespace

template <class T>
void multiply(matrix<const T> a, matrix<const T> b, matrix<T> c, bool adds, instruction_set on) {
  if (!adds)
    clear(c);
  compiled<all_products<T>>::at(on)(a.data, a.stride, uint64_t{1}, a.columns, b, c);
}

template <class T>
void multiply_transposed_first(matrix<const T> a, matrix<const T> b, matrix<T> c, instruction_set on) {
  clear(c);
  compiled<all_products<T>>::at(on)(a.data, uint64_t{1}, a.stride, a.rows, b, c);
}

template <class T>
void multiply_transposed_second(matrix<const T> a, matrix<const T> b, matrix<T> c, instruction_set on) {
  compiled<all_dots<T>>::at(on)(a, b, c);
}

template void multiply(matrix<const float>, matrix<const float>, matrix<float>, bool, instruction_set);
template void multiply(matrix<const double>, matrix<const double>, matrix<double>, bool, instruction_set);
template void multiply_transposed_first(matrix<const float>, matrix<const float>, matrix<float>, instruction_set);
template void multiply_transposed_first(matrix<const double>, matrix<const double>, matrix<double>, instruction_set);
template void multiply_transposed_second(matrix<const float>, matrix<const float>, matrix<float>, instruction_set);
template void multiply_transposed_second(matrix<const double>, matrix<const double>, matrix<double>, instruction_set);

} // namespace ringmaster::training
