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

struct chain_options {
  uint32_t divisor = 0;   ///< Divides the result in the end; 0: does not.
  bool streaming = false; ///< Writes past the caches.
};

/// out[i] = inputs[0][i] op inputs[1][i] ..., from left to right, for two inputs or more. `out` may be an input. All in
/// the wide type, rounded to the datatype once.
void reduce_chain(const reduction_kernels& kernels, std::span<const std::byte* const> inputs, std::byte* out,
                  uint64_t count, const chain_options& options);

/// values[i] /= divisor.
void divide_values(const datatype_kernels& kernels, std::byte* values, uint64_t count, uint32_t divisor);

/// out[i] = in[i] * factor, which is of the datatype.
void scale_values(const datatype_kernels& kernels, const std::byte* factor, const std::byte* in, std::byte* out,
                  uint64_t count);

} // namespace ringmaster
