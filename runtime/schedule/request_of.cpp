#include "runtime/schedule/request_of.hpp"

namespace ringmaster {

plan_request request_of(const proto::Collective& what, uint32_t world_size, uint32_t rank) {
  return {.world_size = world_size,
          .rank = rank,
          .count = what.count(),
          .root = what.root(),
          .peer = what.peer(),
          .counts = {what.counts().begin(), what.counts().end()},
          .chunk = what.chunk_count()};
}

} // namespace ringmaster
