#pragma once

#include <cstddef>

#ifdef RINGMASTER_THREAD_SANITIZER
extern "C" {
void __tsan_read_range(void* from, long bytes); // of its run-time library; GCC knows them with these types
void __tsan_write_range(void* to, long bytes);
}
#endif

namespace ringmaster {

// Loops over bulk memory are built without the thread sanitizer, which would look at each element: it is notified of
// whole ranges. Nothing where there is no sanitizer.

inline void announce_read([[maybe_unused]] const std::byte* from, [[maybe_unused]] size_t bytes) {
#ifdef RINGMASTER_THREAD_SANITIZER
  __tsan_read_range(const_cast<std::byte*>(from), static_cast<long>(bytes));
#endif
}

inline void announce_write([[maybe_unused]] std::byte* to, [[maybe_unused]] size_t bytes) {
#ifdef RINGMASTER_THREAD_SANITIZER
  __tsan_write_range(to, static_cast<long>(bytes));
#endif
}

} // namespace ringmaster
