#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace ringmaster {

/// A part [first, second) of a block, in bytes.
using byte_range = std::pair<uint64_t, uint64_t>;

/// Cuts a block into at most `pieces_max` ranges of about the same size, none (but an only one) shorter than
/// `piece_bytes_min`, at multiples of `unit`.
std::vector<byte_range> cut_block(uint64_t bytes, uint64_t pieces_max, uint64_t piece_bytes_min, uint64_t unit);

} // namespace ringmaster
