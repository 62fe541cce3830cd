#include "runtime/memory/huge_pages.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include <sys/mman.h>
#include <unistd.h>

namespace ringmaster {

namespace {

#ifndef MADV_COLLAPSE
constexpr int MADV_COLLAPSE = 25; // the kernel's headers have it, glibc 2.36 does not
#endif

/// Whether no byte of the page is in memory yet.
bool is_untouched(std::byte* page) {
  static const auto small_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  std::array<unsigned char, 512> resident;
  if (huge_pages::page_bytes / small_bytes > resident.size()
      || ::mincore(page, huge_pages::page_bytes, resident.data()) != 0)
    return false;
  return std::none_of(resident.begin(), resident.begin() + huge_pages::page_bytes / small_bytes,
                      [](unsigned char x) { return (x & 1) != 0; });
}

} // namespace

std::byte* huge_pages::map(int file, uint64_t bytes, int protection) {
  auto* room = ::mmap(nullptr, bytes + page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED)
    return static_cast<std::byte*>(room);
  const auto before = -reinterpret_cast<uintptr_t>(room) % page_bytes;
  auto* start = static_cast<std::byte*>(room) + before;
  auto* mapping = ::mmap(start, bytes, protection, MAP_SHARED | MAP_FIXED, file, 0);
  const auto reason = errno;
  const auto small_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto mapped = mapping == MAP_FAILED ? 0 : (bytes + small_bytes - 1) / small_bytes * small_bytes;
  if (before > 0)
    ::munmap(room, before);
  ::munmap(start + mapped, bytes + page_bytes - before - mapped);
  errno = reason;
  return static_cast<std::byte*>(mapping);
}

huge_pages::huge_pages(std::byte* mapping, uint64_t bytes)
  : mapping_(mapping), asked_(std::make_unique<std::atomic<uint64_t>[]>(bytes / page_bytes / 64 + 1)) {}

bool huge_pages::claim(uint64_t page) {
  const auto bit = uint64_t{1} << page % 64;
  auto& word = asked_[page / 64];
  return (word.load(std::memory_order_relaxed) & bit) == 0 && (word.fetch_or(bit) & bit) == 0;
}

void huge_pages::prepare(uint64_t offset, uint64_t bytes) {
  if (refused_.load(std::memory_order_relaxed))
    return;
  const auto end = (offset + bytes) / page_bytes;
  for (auto page = (offset + page_bytes - 1) / page_bytes; page < end; ++page) {
    auto* start = mapping_ + page * page_bytes;
    if (!claim(page) || !is_untouched(start))
      continue;
    // There must be something to collapse. A store that comes meanwhile is not lost.
    reinterpret_cast<std::atomic<unsigned char>*>(start)->fetch_or(0);
    if (::madvise(start, page_bytes, MADV_COLLAPSE) == 0)
      continue;
    refused_ = errno == EINVAL || errno == ENOSYS; // such files have none here
    return;                                        // else there is none free now, and looking for more takes long
  }
}

} // namespace ringmaster
