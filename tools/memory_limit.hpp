#pragma once

#include <cstdint>
#include <vector>

namespace ringmaster {

/// What memory allows: the shortest time, in microseconds, of a plain loop on all cores that reads the inputs of `ranks`
/// ranks and writes their outputs once, of so many bytes each. The loop adds floats; it shares nothing with the runtime.
double memory_limit_us(uint32_t ranks, uint64_t input_bytes, uint64_t output_bytes, uint32_t samples);

} // namespace ringmaster
