#pragma once

#include "runtime/reduction/reduction_kernels.hpp"

#include <span>

// Whole reductions, put together from the loops of one instruction set: memory is gone through in tiles that stay in
// the first-level cache, so that decoding, accumulating, dividing and encoding touch memory once.

namespace ringmaster {

/// The loops of one datatype and operation.
struct reduction_kernels {
  operation_kernels operation;
  datatype_kernels datatype;
};

/// out[i] = a[i] op b[i].
void reduce_pair(const reduction_kernels& kernels, const std::byte* a, const std::byte* b, std::byte* out,
                 uint64_t count);

/// Sums that may be too large for the datatype are added scaled down: by 2^-k, where 2^k is the least power of two that
/// is no less than the number of ranks. So no partial sum is larger than the largest input. A power of two changes no
/// bit of a sum but where that is below the smallest normal number. Sums of the largest number there is round down, in
/// any order, so no mean is larger than it.
constexpr double scale_for(uint32_t world_size) {
  double result = 1;
  for (uint64_t power = 1; power < world_size; power *= 2)
    result /= 2;
  return result;
}

struct chain_options {
  uint32_t divisor = 0;   ///< Divides the result in the end; 0: does not. Averages of integers are exact.
  bool streaming = false; ///< Writes past the caches.
  /// Where the sum of floats is too large for the wide type, it is made again of operands that are scaled down.
  bool rescues = false;
};

/// out[i] = inputs[0][i] op inputs[1][i] ..., from left to right, for two inputs or more. `out` may be an input. All in
/// the wide type, rounded to the datatype once.
void reduce_chain(const reduction_kernels& kernels, std::span<const std::byte* const> inputs, std::byte* out,
                  uint64_t count, const chain_options& options);

/// out = inputs[0] op inputs[1] ..., each from byte `offset` on, by calls pair(a, b, out) from left to right. Results
/// on the way go to `between`, which has room for one; only the last call writes to `out`, which may be an input.
template <class Pair>
void reduce_by_pairs(std::span<const std::byte* const> inputs, uint64_t offset, std::byte* between, std::byte* out,
                     Pair pair) {
  const std::byte* left = inputs.front() + offset;
  for (size_t i = 1; i < inputs.size(); ++i) {
    pair(left, inputs[i] + offset, i + 1 < inputs.size() ? between : out);
    left = between;
  }
}

/// out[i] = a[i] * a_scale + b[i] * b_scale, of a datatype with `add_scaled`.
void reduce_scaled_pair(const datatype_kernels& kernels, const scaled_operands& of, std::byte* out, uint64_t count);

/// By what a sum of operands that were scaled by `scale` is divided to be their average, or with divisor 0 their sum.
constexpr double unscaling(uint32_t divisor, double scale) {
  return divisor == 0 ? scale : divisor * scale;
}

/// values[i] /= divisor, of a datatype with `unscale`.
void unscale_values(const datatype_kernels& kernels, std::byte* values, uint64_t count, double divisor);

/// values[i] /= divisor.
void divide_values(const datatype_kernels& kernels, std::byte* values, uint64_t count, uint32_t divisor);

/// out[i] = in[i] * factor, which is of the datatype.
void scale_values(const datatype_kernels& kernels, const std::byte* factor, const std::byte* in, std::byte* out,
                  uint64_t count);

} // namespace ringmaster
