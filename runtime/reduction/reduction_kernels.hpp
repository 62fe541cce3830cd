#pragma once

#include "messages/gpu_sim.pb.h"
#include "messages/types.pb.h"
#include "runtime/reduction/instruction_set.hpp"

#include <ringmaster/datatype.hpp>

#include <cstddef>
#include <cstdint>

// The loops over elements, one a datatype, operation and instruction set, for runtime/reduction/reduction_tiles.cpp and
// tests. Pointers need no alignment.
//
// Arithmetic is in an element's wide type: float32 for the floats narrower than it, otherwise the datatype itself.
// Narrow floats have no arithmetic loops: they are decoded and encoded.

namespace ringmaster {

/// out[i] = a[i] op b[i], with one NaN for all. `out` may be `a` or `b`.
using pair_kernel = void (*)(const std::byte* a, const std::byte* b, std::byte* out, uint64_t count);
/// out[i] = inputs[0][first + i] op inputs[1][first + i] ..., or accumulated[i] op inputs[0][first + i] ... `out` may
/// be `accumulated` or the elements of an input from the first on.
using accumulation_kernel = void (*)(const std::byte* const* inputs, uint64_t first, const std::byte* accumulated,
                                     std::byte* out, uint64_t count);
/// out[i] = in[i] of another type.
using conversion_kernel = void (*)(const std::byte* in, std::byte* out, uint64_t count);
/// out[i] = in[i] / divisor; `divisor` > 0; `out` may be `in`.
using division_kernel = void (*)(const std::byte* in, std::byte* out, uint64_t count, uint32_t divisor);
/// out[i] = in[i] * *factor; `out` may be `in`.
using scaling_kernel = void (*)(const std::byte* in, std::byte* out, uint64_t count, const std::byte* factor);

/// out[i] = the exact mean, truncated toward zero, of inputs[0][first + i], inputs[1][first + i], ...: integers, added
/// in a wider type.
using mean_kernel = void (*)(const mean_inputs& from, std::byte* out, uint64_t count);
/// Sets `all` to false where a value is infinite or NaN.
using finite_kernel = void (*)(const std::byte* values, uint64_t count, bool* all);
/// out[i] = a[i] * a_scale + b[i] * b_scale; `out` may be `a` or `b`.
struct scaled_operands {
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;
  double a_scale = 1, b_scale = 1;
};
using scaled_sum_kernel = void (*)(const scaled_operands& of, std::byte* out, uint64_t count);
/// out[i] = in[i] / divisor; `out` may be `in`.
using unscaling_kernel = void (*)(const std::byte* in, std::byte* out, uint64_t count, double divisor);

/// What depends on the operation, in the wide type. AVG and PREMUL_SUM add. A datatype that a program registered has
/// `pair` alone.
struct operation_kernels {
  pair_kernel pair = nullptr;
  accumulation_kernel begin_2 = nullptr; ///< with two inputs, ignoring `accumulated`, ...
  accumulation_kernel begin_4 = nullptr;
  accumulation_kernel begin_8 = nullptr;
  accumulation_kernel extend_1 = nullptr; ///< by one input, ...
  accumulation_kernel extend_2 = nullptr;
  accumulation_kernel extend_4 = nullptr;
};

/// What does not.
struct datatype_kernels {
  size_t element_bytes = 0;
  size_t wide_bytes = 0;
  conversion_kernel decode = nullptr; ///< To the wide type, exactly; nullptr where it is the datatype.
  conversion_kernel encode = nullptr; ///< From the wide type, rounded; likewise.
  division_kernel divide = nullptr;   ///< In the wide type, as the next.
  scaling_kernel scale = nullptr;
  mean_kernel mean = nullptr; ///< Of integers.
  // Of floats whose sums may be too large for the wide type: averages and sums with factors are added scaled down where
  // that is so. Null for all others. In the wide type.
  finite_kernel check_finite = nullptr;
  scaled_sum_kernel add_scaled = nullptr;
  unscaling_kernel unscale = nullptr;
};

/// All nullptr for a datatype or operation that does not exist, and for USER.
operation_kernels operation_kernels_for(proto::DataType type, gpu_sim::ReduceOp op, instruction_set set);
datatype_kernels datatype_kernels_for(proto::DataType type, instruction_set set);

} // namespace ringmaster
