#include "tools/console/own_memory.hpp"

#include <fstream>
#include <limits>
#include <string>

#include <malloc.h>

namespace ringmaster {

uint64_t own_memory_bytes() {
  ::malloc_trim(0);
  std::ifstream status{"/proc/self/status"};
  for (std::string name; status >> name;)
    if (uint64_t kib = 0; name == "RssAnon:" && status >> kib)
      return kib * 1024;
  return 0;
}

void freed_memory::give_back_now_and_then() {
  constexpr auto pause = std::chrono::seconds{10};
  auto now = std::chrono::steady_clock::now();
  if (now < next_)
    return;
  next_ = now + pause;
  ::malloc_trim(0);
}

void keep_freed_memory() {
  constexpr int from_heaps_max = 32 << 20; // half of a thread's heap, the most that glibc takes
  ::mallopt(M_MMAP_THRESHOLD, from_heaps_max);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

} // namespace ringmaster
