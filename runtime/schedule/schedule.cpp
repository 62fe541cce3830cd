#include "runtime/schedule/schedule.hpp"

#include <algorithm>

namespace ringmaster {

block_range block_of(buffer where, uint64_t count, uint32_t blocks, uint32_t index) {
  auto size = count / blocks;
  auto larger = count % blocks;
  return {where, index * size + std::min<uint64_t>(index, larger), size + (index < larger ? 1 : 0)};
}

} // namespace ringmaster
