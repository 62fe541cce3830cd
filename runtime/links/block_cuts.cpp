#include "runtime/links/block_cuts.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>

namespace ringmaster {

std::vector<byte_range> cut_block(uint64_t bytes, uint64_t pieces_max, uint64_t piece_bytes_min, uint64_t unit) {
  ensure(unit > 0, "an element has a size");
  auto pieces = std::clamp<uint64_t>(bytes / std::max<uint64_t>(piece_bytes_min, 1), 1,
                                     std::max<uint64_t>(pieces_max, 1));
  std::vector<byte_range> result;
  uint64_t begin = 0;
  for (uint64_t i = 1; i <= pieces; ++i) {
    auto end = i == pieces ? bytes : bytes / pieces * i / unit * unit;
    if (end > begin || pieces == 1)
      result.emplace_back(begin, end);
    begin = end;
  }
  ensure(!result.empty() && result.front().first == 0 && result.back().second == bytes,
         "the pieces of a block cover all of it");
  return result;
}

} // namespace ringmaster
