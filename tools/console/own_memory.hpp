#pragma once

#include <chrono>
#include <cstdint>

namespace ringmaster {

/// Bytes of memory that this process holds beside mapped files: its heap and stacks, without what the heap could give
/// back. 0 where the system does not say (/proc/self/status).
uint64_t own_memory_bytes();

/// Gives back what the heap of a process that lives long holds freed. glibc by itself keeps up to 64 MiB in each of its
/// arenas, of which there are eight a core, once it has seen large blocks; that is good while they come and go, so it
/// stays so for a while.
class freed_memory {
public:
  /// For a loop: does it every ten seconds.
  void give_back_now_and_then();

private:
  std::chrono::steady_clock::time_point next_ = {};
};

/// For a program whose large blocks come and go all the time, as a training's tensors: of up to 32 MiB, what is freed
/// mostly stays with it, and is taken again as it is. By itself the C library has the system map and clear such blocks
/// anew until it has seen enough of them, and gives the ends of threads' heaps back. To be called before there are
/// other threads.
void keep_freed_memory();

} // namespace ringmaster
