#pragma once

#include "runtime/schedule/collective.hpp"

namespace ringmaster {

/// Elements of what nccl-tests call the size of a collective: of the whole where it has one count, of all blocks
/// together where each rank has one. 0 for a barrier.
uint64_t size_count(proto::CollectiveKind kind, const plan_request& request);

/// The count for a plan_request of `elements` elements altogether: the inverse, rounded down.
uint64_t count_for_size(proto::CollectiveKind kind, uint32_t world_size, uint64_t elements);

/// Bus bandwidth / algorithm bandwidth: what makes results for different world sizes comparable with what a link
/// carries. Algorithm bandwidth is size / time. Source: nccl-tests, doc/PERFORMANCE.md and the programs' getBw; gather
/// and scatter as there, a rank's own block never travels.
double bus_bandwidth_factor(proto::CollectiveKind kind, uint32_t world_size);

} // namespace ringmaster
