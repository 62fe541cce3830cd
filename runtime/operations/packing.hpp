#pragma once

#include "messages/collective.pb.h"

#include <cstdint>
#include <vector>

namespace ringmaster {

/// A run of bytes of a rank's buffer, and its place in the packed buffer.
struct packed_piece {
  uint64_t offset = 0; ///< In the packed buffer, bytes.
  uint64_t address = 0;
  uint64_t bytes = 0;

  bool operator==(const packed_piece&) const = default;
};

enum class buffer_side : uint8_t { input, output };

/// The pieces of one side of `rank`'s buffers, without empty ones, in the order of the operations. `bytes`: of that
/// side, of all operations. If they are packed, block b of the packed buffer consists of the operations' blocks b, one
/// after the other: so each element stays in its block and goes from rank to rank as without packing. Else it is one
/// piece.
std::vector<packed_piece> packed_pieces(const proto::OperationPlan& plan, uint32_t rank, buffer_side side,
                                        uint64_t bytes);

} // namespace ringmaster
