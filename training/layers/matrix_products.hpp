#pragma once

#include "runtime/reduction/instruction_set.hpp"

#include <cstdint>

namespace ringmaster::training {

/// A matrix of `rows` rows, `stride` elements apart.
template <class T>
struct matrix {
  T* data;
  uint64_t rows, columns, stride;

  matrix(T* first, uint64_t r, uint64_t c) : matrix(first, r, c, c) {}
  matrix(T* first, uint64_t r, uint64_t c, uint64_t s) : data(first), rows(r), columns(c), stride(s) {}
  T* row(uint64_t i) const { return data + i * stride; }
};

// Products of row-major matrices, in one thread. Each element is summed in an order of its own that depends on the
// sizes only, not on the machine or the instruction set; float or double.

/// c = a b, or c += a b.
template <class T>
void multiply(matrix<const T> a, matrix<const T> b, matrix<T> c, bool adds = false,
              instruction_set on = best_instruction_set());
/// c = transposed(a) b.
template <class T>
void multiply_transposed_first(matrix<const T> a, matrix<const T> b, matrix<T> c,
                               instruction_set on = best_instruction_set());
/// c = a transposed(b).
template <class T>
void multiply_transposed_second(matrix<const T> a, matrix<const T> b, matrix<T> c,
                                instruction_set on = best_instruction_set());

} // namespace ringmaster::training
