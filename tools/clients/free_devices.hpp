#pragma once

#include "client/client.hpp"

#include <cstdio>
#include <string>
#include <vector>

namespace ringmaster {

/// Devices without a communicator, by ascending id.
std::vector<const proto::ClusterInfo::Device*> free_devices(const proto::ClusterInfo& cluster);

/// The memory of the device with the least, in bytes; UINT64_MAX for no device.
uint64_t least_memory_bytes(const std::vector<const proto::ClusterInfo::Device*>& devices);

/// Errors: too_few_devices if fewer are free, with the communicators that have the others. `who`: "bench".
caf::error check_free(const std::string& who, uint64_t wanted, const proto::ClusterInfo& cluster);

/// Waits for `patience` until `wanted` devices are free, and prints to `err` that it waits. Errors: as of `check_free`.
caf::expected<proto::ClusterInfo> await_free(client& user, const std::string& who, uint64_t wanted,
                                             caf::timespan patience, std::FILE* err);

} // namespace ringmaster
