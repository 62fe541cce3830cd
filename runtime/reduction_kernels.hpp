#pragma once

#include "messages/gpu_sim.pb.h"
#include "messages/types.pb.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

// The loops behind runtime/reduction.hpp, one a datatype, operation and instruction set. Use that header; this one is
// for tests and benchmarks that choose the instruction set.

namespace ringmaster {

/// What the loops are compiled for. On x86-64 the baseline is SSE2, avx512 is F, DQ, BW and VL; other machines have the
/// baseline only.
enum class instruction_set : uint8_t { baseline, avx2, avx512 };

std::string_view name_of(instruction_set set);

/// The instruction sets of this machine, narrowest first; the baseline is always there.
const std::vector<instruction_set>& supported_instruction_sets();

/// The widest of them, found out once.
instruction_set best_instruction_set();

/// out[i] = op(a[i], b[i]), as `reduce` says. Any alignment.
using reduction_kernel = void (*)(const std::byte* a, const std::byte* b, std::byte* out, uint64_t count);

/// values[i] /= divisor; `divisor` > 0. Any alignment.
using division_kernel = void (*)(std::byte* values, uint64_t count, uint32_t divisor);

/// nullptr for a datatype or operation that does not exist. AVG adds.
reduction_kernel kernel_for(proto::DataType type, gpu_sim::ReduceOp op, instruction_set set);
division_kernel division_for(proto::DataType type, instruction_set set);

} // namespace ringmaster
