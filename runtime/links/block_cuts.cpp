#include "runtime/links/block_cuts.hpp"

#include <algorithm>

namespace ringmaster {

std::vector<byte_range> cut_block(uint64_t bytes, uint64_t pieces_max, uint64_t piece_bytes_min, uint64_t unit) {
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
  return result;
}

} // namespace ringmaster
