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

plan_request request_of(const proto::OperationPlan& plan, uint32_t rank) {
  auto result = request_of(plan.collective(), static_cast<uint32_t>(plan.device_ids_size()), rank);
  result.hosts = {plan.rank_hosts().begin(), plan.rank_hosts().end()};
  return result;
}

} // namespace ringmaster
