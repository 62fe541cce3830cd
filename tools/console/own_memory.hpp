#pragma once

#include <chrono>
#include <cstdint>

namespace ringmaster {

/// Bytes of memory of this process without mapped files: heap and stacks, without free memory of the heap. 0 if the
/// system does not report it (/proc/self/status).
uint64_t own_memory_bytes();

/// Returns freed heap memory of a long-lived process to the system. glibc keeps up to 64 MiB in each of its arenas
/// (eight for each core) once it has seen large blocks. Frequent blocks profit from that, so memory is returned every
/// ten seconds.
class freed_memory {
public:
  /// To be called in a loop: returns memory every ten seconds.
  void give_back_now_and_then();

private:
  std::chrono::steady_clock::time_point next_ = {};
};

/// Keeps freed blocks of up to 32 MiB in the heap, for a program that often allocates large blocks, such as tensors. By
/// default the C library maps and clears such blocks again, and returns the ends of threads' heaps. Must be called
/// before other threads are started.
void keep_freed_memory();

} // namespace ringmaster
