#pragma once

#include "runtime/operations/admission.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ringmaster {

/// The call of a rank: "all_reduce", "send to rank 2", "split".
std::string name_of(const proto::RankCall::Part& what);

/// Compares the ranks' calls of one operation: kind, count, datatype, reduction, root, in place, algorithm, epoch.
/// Returns what differs, with the ranks and their values: "count: 8 on rank 0, 2, 9 on rank 1"; nothing if they agree.
/// `parts`: of a collective by rank, of a transfer the sender's and the receiver's; `ranks`: their ranks.
std::optional<std::string> difference_of(std::span<const call_part> parts, std::span<const uint32_t> ranks);

/// Which of these parts, which differ, are unlike those of most ranks; all of them if no more ranks agree than differ.
std::vector<size_t> odd_ones_of(std::span<const call_part> parts);

/// The operation of these parts, which do not differ, over `world_size` ranks. Ranks without a part were lost: they
/// have no addresses, no counts, and the factor 1.
proto::CollectiveRequest joined(std::span<const call_part> parts, std::span<const uint32_t> ranks, uint32_t world_size);

} // namespace ringmaster
