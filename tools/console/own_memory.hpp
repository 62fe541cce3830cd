#pragma once

#include <cstdint>

namespace ringmaster {

/// Bytes of memory that this process holds beside mapped files: its heap and stacks, without what the heap could give
/// back. 0 where the system does not say (/proc/self/status).
uint64_t own_memory_bytes();

} // namespace ringmaster
