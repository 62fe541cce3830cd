#pragma once

#include "messages/transfer.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace ringmaster {

/// Which host each rank lies on, as `plan_request` has it: hosts are numbered in the order of their first ranks. Empty
/// where all lie on one.
///
/// A host is what has a fast way within. With `share_memory` that is where memory files are found: the devices of one
/// kernel whose files are in one file system, as those of containers are not. Otherwise, and for a device that does not
/// say where its memory lies, it is the process.
std::vector<uint32_t> rank_hosts(std::span<const device_handle> ranks, bool share_memory);

/// Any numbers, as above: equal ones are a host.
std::vector<uint32_t> numbered_hosts(std::span<const uint32_t> by_rank);

} // namespace ringmaster
