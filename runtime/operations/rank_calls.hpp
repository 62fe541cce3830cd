#pragma once

#include "runtime/operations/admission.hpp"

#include <optional>
#include <span>
#include <string>

namespace ringmaster {

/// "all_reduce", "send to rank 2", "split": what a rank has called.
std::string name_of(const proto::RankCall::Part& what);

/// Whether the ranks mean the same operation: kind, count, datatype, reduction, root, in place, algorithm, epoch.
/// Returns what differs, with the ranks and their values: "count: 8 on rank 0, 2, 9 on rank 1"; nothing if they agree.
/// `parts`: of a collective by rank, of a transfer the sender's and the receiver's, whose ranks are `ranks`.
std::optional<std::string> difference_of(std::span<const call_part> parts, std::span<const uint32_t> ranks);

/// The operation that these parts make together, over `world_size` ranks. They do not differ. Ranks that have no part,
/// since they were lost, have no addresses, no counts, and the factor 1.
proto::CollectiveRequest joined(std::span<const call_part> parts, std::span<const uint32_t> ranks, uint32_t world_size);

} // namespace ringmaster
