#pragma once

#include <cstdint>
#include <filesystem>

namespace ringmaster::training {

/// Bytes of memory that this process can still get: the least of what the host has available (MemAvailable of
/// /proc/meminfo), of what the limits of its control groups leave (versions 1 and 2; page cache that can be dropped
/// counts as free), and of what its limit of addresses (RLIMIT_AS) leaves. UINT64_MAX where the system says nothing.
/// Reads some files, which takes some tens of microseconds. `root`: where /proc and /sys lie.
uint64_t free_memory(const std::filesystem::path& root = "/");

} // namespace ringmaster::training
