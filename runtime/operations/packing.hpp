#pragma once

#include "messages/collective.pb.h"

#include <cstdint>
#include <vector>

namespace ringmaster {

/// A run of bytes of a rank's buffer, and where it lies among those that are walked as one.
struct packed_piece {
  uint64_t offset = 0; ///< In the packed buffer, bytes.
  uint64_t address = 0;
  uint64_t bytes = 0;

  bool operator==(const packed_piece&) const = default;
};

enum class buffer_side : uint8_t { input, output };

/// The pieces of one side of `rank`'s buffers, none without bytes, in the order of the operations. `bytes`: of that
/// side, of all of them. Where they are fused, block b of the packed buffer is what the operations' blocks b are, one
/// behind the other: so what goes from rank to rank is what would go without company, and each element stays in its
/// block. Else it is one piece.
std::vector<packed_piece> packed_pieces(const proto::OperationPlan& plan, uint32_t rank, buffer_side side,
                                        uint64_t bytes);

} // namespace ringmaster
