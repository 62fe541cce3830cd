#pragma once

#include "client/client.hpp"

#include <cstdio>
#include <string>
#include <vector>

namespace ringmaster {

/// Those in no communicator, with the lowest ids first.
std::vector<const proto::ClusterInfo::Device*> free_devices(const proto::ClusterInfo& cluster);

/// Bytes of memory of the device that has least; none: the largest number.
uint64_t least_memory_bytes(const std::vector<const proto::ClusterInfo::Device*>& devices);

/// Errors: too_few_devices where fewer are free, with how many came and who has the others. `who` as in "bench".
caf::error check_free(const std::string& who, uint64_t wanted, const proto::ClusterInfo& cluster);

/// The cluster as soon as so many of its devices are free. For those that may be about to join, or to be given back, it
/// waits `patience` and says so on `err`. Errors: as of `check_free`.
caf::expected<proto::ClusterInfo> await_free(client& user, const std::string& who, uint64_t wanted,
                                             caf::timespan patience, std::FILE* err);

} // namespace ringmaster
