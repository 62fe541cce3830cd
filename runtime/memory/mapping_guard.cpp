#include "runtime/memory/mapping_guard.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <mutex>

#include <sys/mman.h>

namespace ringmaster {

namespace {

/// What the signal handler reads: no lock, no allocation. Free if `start` is 0.
struct guarded_range {
  std::atomic<uintptr_t> start{0};
  std::atomic<uintptr_t> end{0};
  std::atomic<bool> struck{false};
};

constexpr size_t ranges_max = 1u << 14; // devices, also those of other processes
std::array<guarded_range, ranges_max> ranges;
std::atomic<size_t> ranges_used{0}; ///< No range at or behind this index was ever taken.
std::mutex taking;
struct sigaction before_us;

bool replace(guarded_range& x, uintptr_t address) {
  auto start = x.start.load();
  auto end = x.end.load();
  if (start == 0 || address < start || address >= end || x.start.load() != start)
    return false; // not its, or the place is being given to another one
  x.struck = true;
  auto* where = reinterpret_cast<void*>(start); // NOLINT(performance-no-int-to-ptr)
  return ::mmap(where, end - start, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
                0)
         == where;
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const auto old_errno = errno;
  auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (size_t i = 0, used = ranges_used; i < used; ++i)
    if (replace(ranges[i], address)) {
      errno = old_errno;
      return;
    }
  if ((before_us.sa_flags & SA_SIGINFO) != 0 && before_us.sa_sigaction != nullptr)
    return before_us.sa_sigaction(signal, info, context);
  ::sigaction(SIGBUS, &before_us, nullptr); // the access is tried again, and ends the process as it would have
}

void install_handler() {
  struct sigaction ours = {};
  ours.sa_sigaction = on_bus_error;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  ::sigemptyset(&ours.sa_mask);
  ::sigaction(SIGBUS, &ours, &before_us);
}

} // namespace

mapping_guard::mapping_guard(std::byte* start, uint64_t bytes) : slot_(ranges_max) {
  static std::once_flag installed;
  std::call_once(installed, install_handler);
  std::lock_guard guard{taking};
  for (size_t i = 0; i < ranges_max && slot_ == ranges_max; ++i)
    if (ranges[i].start == 0)
      slot_ = i;
  if (slot_ == ranges_max)
    return; // unguarded, as every program is
  auto& mine = ranges[slot_];
  mine.struck = false;
  mine.end = reinterpret_cast<uintptr_t>(start) + bytes;
  mine.start = reinterpret_cast<uintptr_t>(start);
  if (slot_ >= ranges_used)
    ranges_used = slot_ + 1;
}

void mapping_guard::end() noexcept {
  if (slot_ < ranges_max)
    ranges[slot_].start = 0;
  slot_ = ranges_max;
}

bool mapping_guard::struck() const noexcept {
  return slot_ < ranges_max && ranges[slot_].struck;
}

} // namespace ringmaster
