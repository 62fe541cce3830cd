#pragma once

#include "tools/bench/bench_options.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ringmaster {

// What the bench's ranks start with, and what they must end with, computed apart from the runtime: small whole numbers
// that repeat every few elements, so that sums are exact in every datatype.

/// `count` elements of rank `rank`'s input.
std::vector<std::byte> bench_input(proto::DataType type, uint32_t rank, uint64_t count);

/// How many of the `bytes` at `found`, an output of rank `rank`, are wrong. In elements.
uint64_t count_wrong(const bench_options& options, uint64_t count, uint32_t rank, const std::byte* found,
                     uint64_t elements);

} // namespace ringmaster
