#pragma once

#include "messages/transfer.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace ringmaster {

/// The host of each rank, as in `plan_request`: hosts are numbered in the order of their first ranks. Empty if all
/// ranks are on one host.
///
/// A host is a set of devices with a fast connection. With `share_memory` these are the devices of one kernel whose
/// memory files are in one file system, unlike those of containers. Otherwise, and for a device whose memory file is
/// not known, it is the process.
std::vector<uint32_t> rank_hosts(std::span<const device_handle> ranks, bool share_memory);

/// The same for any numbers: equal ones are a host.
std::vector<uint32_t> numbered_hosts(std::span<const uint32_t> by_rank);

} // namespace ringmaster
