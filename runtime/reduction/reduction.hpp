#pragma once

#include "messages/gpu_sim.pb.h"
#include "messages/types.pb.h"

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ringmaster {

/// Bytes of one element; 0 for a type that does not exist, as a message may hold.
size_t size_of(proto::DataType type);

/// "float64", "sum", ...: as people write them in options and logs.
std::string_view name_of(proto::DataType type);
std::string_view name_of(gpu_sim::ReduceOp op);
/// Errors: invalid_argument, naming what is allowed. USER cannot be parsed: such a reduction has a name of its own.
caf::expected<proto::DataType> parse_datatype(std::string_view text);
caf::expected<gpu_sim::ReduceOp> parse_reduce_op(std::string_view text);

/// Whether the order of a reduction's operands shows in the bits of its result: floats are added or multiplied, or a
/// user's function is applied, which need be neither commutative nor associative.
bool order_shows(proto::DataType type, gpu_sim::ReduceOp op);

/// Whether a reduction can only be right, wherever its result can be represented, if all inputs of an element are added
/// at once in a wider type: averages of integers, whose sum has more digits than the datatype; and averages and sums
/// with factors of floats with so few exponents that to scale them down would cost digits.
bool needs_all_inputs(proto::DataType type, gpu_sim::ReduceOp op);

/// out[i] = op(a[i], b[i]) for `count` elements; AVG and PREMUL_SUM add. `out` may be `a` or `b`, but not overlap them
/// otherwise. The pointers need no alignment; type and op must exist, and the op not be USER: see
/// runtime/reduction/reducer.hpp. The same bits with every instruction set: one operation an element, no
/// contraction, no reordering, and every NaN is the one positive quiet NaN. Integers wrap around. MIN and MAX give NaN
/// where either side is NaN, and -0 is smaller than +0: their result does not depend on the order of the ranks.
///
/// float16, bfloat16, float8_e4m3 and float8_e5m2 are computed in float32, and the result is rounded to the nearest,
/// ties to even: a chain of calls rounds at each. What is too large becomes infinity; float8_e4m3 has none, so NaN
/// (Micikevicius et al., "FP8 Formats for Deep Learning", 2022, whose non-saturating conversion this is).
void reduce(proto::DataType type, gpu_sim::ReduceOp op, const std::byte* a, const std::byte* b, std::byte* out,
            uint64_t count);

/// Ends a reduction over `world_size` > 0 ranks: AVG divides (integers truncate toward zero), the others do nothing.
void finish_reduction(proto::DataType type, gpu_sim::ReduceOp op, uint32_t world_size, std::byte* values,
                      uint64_t count);

/// Whether `factor` can be PREMUL_SUM's for the datatype. Errors: invalid_argument: not finite in the datatype; for
/// integers, not whole or out of their range.
caf::error check_factor(proto::DataType type, double factor);

/// out[i] = in[i] * factor for `count` elements, the factor rounded to the datatype first, as NCCL takes it; it must
/// pass `check_factor`. `out` may be `in`. Computed as `reduce` does.
void scale(proto::DataType type, double factor, const std::byte* in, std::byte* out, uint64_t count);

} // namespace ringmaster
