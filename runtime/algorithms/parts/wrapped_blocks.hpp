#pragma once

#include "runtime/schedule/collective.hpp"

#include <algorithm>
#include <array>

namespace ringmaster {

/// Blocks `first`, `first` + 1, ..., `length` of them, where block 0 follows the last: one range, and a second one,
/// otherwise empty, where they go past the end. `first` < size, `length` <= size.
inline std::array<block_range, 2> wrapped_blocks(const blocks& cut, buffer where, uint32_t first, uint32_t length) {
  const auto before_end = std::min(length, cut.size() - first);
  return {cut.range(where, first, first + before_end), cut.range(where, 0, length - before_end)};
}

/// Rounds of an algorithm that doubles in each: the smallest k with 2^k >= `world_size`.
inline uint32_t doublings(uint32_t world_size) {
  uint32_t k = 0;
  while ((uint64_t{1} << k) < world_size)
    ++k;
  return k;
}

} // namespace ringmaster
