#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace ringmaster {

/// What the loops over elements are compiled for. On x86-64 the baseline is SSE2, avx2 includes F16C, avx512 is
/// F, DQ, BW and VL; other machines have the baseline only.
enum class instruction_set : uint8_t { baseline, avx2, avx512 };

std::string_view name_of(instruction_set set);

/// The instruction sets of this machine, narrowest first; the baseline is always there.
const std::vector<instruction_set>& supported_instruction_sets();

/// The widest of them, found out once.
instruction_set best_instruction_set();

} // namespace ringmaster
