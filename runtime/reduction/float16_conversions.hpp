#pragma once

#include "runtime/reduction/reduction_kernels.hpp"

namespace ringmaster {

/// Between float16 and float32, with the instructions that an instruction set has for it: two to three times as fast as
/// runtime/reduction/small_floats.hpp, and the same bits. nullptr where it has none.
conversion_kernel float16_decoding(instruction_set set);
conversion_kernel float16_encoding(instruction_set set);

} // namespace ringmaster
