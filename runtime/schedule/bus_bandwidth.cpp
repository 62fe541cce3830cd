#include "runtime/schedule/bus_bandwidth.hpp"

#include <numeric>

namespace ringmaster {

uint64_t size_count(proto::CollectiveKind kind, const plan_request& request) {
  if (kind == proto::BARRIER)
    return 0;
  if (!has_v_variant(kind))
    return request.count;
  if (request.counts.empty())
    return request.count * request.world_size;
  auto total = std::accumulate(request.counts.begin(), request.counts.end(), uint64_t{0});
  return kind == proto::ALL_TO_ALL ? total / request.world_size : total;
}

uint64_t count_for_size(proto::CollectiveKind kind, uint32_t world_size, uint64_t elements) {
  return has_v_variant(kind) ? elements / world_size : elements;
}

double bus_bandwidth_factor(proto::CollectiveKind kind, uint32_t world_size) {
  auto n = static_cast<double>(world_size);
  switch (kind) {
    case proto::ALL_REDUCE: return 2 * (n - 1) / n;
    case proto::ALL_GATHER:
    case proto::REDUCE_SCATTER:
    case proto::ALL_TO_ALL:
    case proto::GATHER:
    case proto::SCATTER: return (n - 1) / n;
    default: return 1;
  }
}

} // namespace ringmaster
