#pragma once

#include "training/computed/step_world.hpp"

#include <cstdint>
#include <filesystem>

namespace ringmaster::training {

/// Bytes of memory that this process can still get: the minimum of what the host has available (MemAvailable of
/// /proc/meminfo), of what the limits of its control groups leave (versions 1 and 2; page cache that can be dropped
/// counts as free), and of what its address space limit (RLIMIT_AS) leaves. UINT64_MAX if the system does not say.
/// Reads files, which takes tens of microseconds. `root`: the directory of /proc and /sys.
uint64_t free_memory(const std::filesystem::path& root = "/");

/// What would leave a rank of this world more memory, of the choices that this model allows: "with a larger
/// --device.memory-bytes or under zero3, fsdp or 1f1b, which shard what takes it". `of_samples`: the value that did not
/// fit grows with the micro-batch.
std::string memory_advice(const training_job& job, const step_world& world, bool of_samples);

} // namespace ringmaster::training
