#pragma once

#include "runtime/memory/mapped_memory.hpp"

namespace ringmaster {

/// Whether the file of another process's memory is shorter than the memory by now, because it was truncated: what
/// `damage` says only when the bytes that are missing have been touched. One look at the file system. Errors:
/// device_lost.
caf::error shortage_of(const mapped_memory& memory);

} // namespace ringmaster
