#include "runtime/memory/mapped_memory.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/memory/open_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <limits>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
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

namespace {

caf::error cannot_reach(const memory_place& place, std::string_view why) {
  return make_error(errc::unreachable, fmt::format("{}: its memory file {} cannot be used from this process: {}",
                                                   text_of(place.device), place.file, why));
}

} // namespace

std::string text_of(device_id id) {
  return fmt::format("device {:#x}", id.value);
}

std::filesystem::path memory_file(const std::filesystem::path& directory, device_id id) {
  return directory / fmt::format("device-{:x}.memory", id.value);
}

uint64_t this_host() {
  static const uint64_t known = [] {
    std::string boot;
    std::ifstream{"/proc/sys/kernel/random/boot_id"} >> boot; // drawn again at each start of the kernel
    uint64_t result = boot.empty() ? 0 : 14695981039346656037u;
    for (auto x : boot) // FNV-1a: the same in all our programs, as std::hash need not be
      result = (result ^ static_cast<unsigned char>(x)) * 1099511628211u;
    return result;
  }();
  return known;
}

caf::expected<std::shared_ptr<mapped_memory>> mapped_memory::reach(const memory_place& place, access what) {
  constexpr auto largest_file = static_cast<uint64_t>(std::numeric_limits<off_t>::max());
  if (place.file.empty())
    return cannot_reach(place, "it has no file");
  if (place.host == 0 || place.host != this_host())
    return cannot_reach(place, "it is on another host");
  if (!place.file.ends_with(memory_file("/", place.device).string()))
    return cannot_reach(place, "that is not the name of a device's memory"); // a peer may send any name
  if (place.bytes == 0 || place.bytes > largest_file / 4)
    return cannot_reach(place, fmt::format("it cannot be {} bytes long", place.bytes));
  const bool writes = what == access::write;
  open_file file{::open(place.file.c_str(), (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  struct stat there;
  if (file.descriptor < 0 || ::fstat(file.descriptor, &there) != 0)
    return cannot_reach(place, std::strerror(errno));
  if (!S_ISREG(there.st_mode) || there.st_dev != place.file_system || there.st_ino != place.inode)
    return cannot_reach(place, "another file has that name here, as in another container");
  if (there.st_uid != ::geteuid())
    return cannot_reach(place, "it belongs to another user");
  if (static_cast<uint64_t>(there.st_size) < file_bytes(place.bytes))
    return cannot_reach(place, fmt::format("it has {} bytes, not {}", there.st_size, file_bytes(place.bytes)));
  auto* mapping = huge_pages::map(file.descriptor, file_bytes(place.bytes),
                                  writes ? PROT_READ | PROT_WRITE : PROT_READ);
  if (mapping == MAP_FAILED)
    return cannot_reach(place, std::strerror(errno));
  return std::shared_ptr<mapped_memory>{new mapped_memory{place, mapping}};
}

mapped_memory::mapped_memory(memory_place place, std::byte* mapping)
  : place_(std::make_shared<const memory_place>(std::move(place))), mapping_(mapping),
    pages_(mapping, 2 * place_->bytes), guard_(mapping, file_bytes(place_->bytes)) {}

mapped_memory::~mapped_memory() {
  guard_.end(); // while the mapping is there
  ::munmap(mapping_, file_bytes(place_->bytes));
}

std::span<operation_mark> mapped_memory::marks() const {
  return {reinterpret_cast<operation_mark*>(mapping_ + marks_offset(place_->bytes)),
          marks_bytes / sizeof(operation_mark)};
}

operation_mark* mapped_memory::mark_of(communicator_id communicator, bool claim) const {
  ensure(communicator != communicator_id{}, "a mark is of a communicator");
  for (auto& each : marks())
    if (each.communicator.load(std::memory_order_acquire) == communicator.value)
      return &each;
  if (!claim)
    return nullptr;
  for (auto& each : marks()) {
    uint64_t is_free = 0;
    if (!each.communicator.compare_exchange_strong(is_free, communicator.value))
      continue;
    each.moving = 0;
    each.moved = 0;
    return &each;
  }
  return nullptr;
}

void mapped_memory::free_mark(communicator_id communicator) const {
  if (auto* mark = mark_of(communicator, false))
    mark->communicator = 0;
}

caf::expected<std::span<std::byte>> mapped_memory::within(uint64_t begin, uint64_t end, uint64_t address,
                                                          uint64_t bytes) const {
  ensure(begin <= end && begin >= min_address() && end - min_address() <= 2 * place_->bytes,
         "an area lies within the memory");
  if (address >= begin && address <= end && bytes <= end - address)
    return std::span<std::byte>{mapping_ + (address - min_address()), bytes};
  std::string_view why = "begins beyond";
  if (bytes > std::numeric_limits<uint64_t>::max() - address)
    why = "wraps around the end of all addresses, beyond";
  else if (address < begin)
    why = "begins below";
  else if (address < end)
    why = "ends beyond";
  return make_error(errc::out_of_range,
                    fmt::format("{}: address {:#x} with {:#x} bytes {} its memory, which is [{:#x}, {:#x})",
                                text_of(id()), address, bytes, why, begin, end));
}

caf::expected<std::span<std::byte>> mapped_memory::at(uint64_t address, uint64_t bytes) const {
  return within(min_address(), max_address(), address, bytes);
}

caf::expected<std::span<std::byte>> mapped_memory::at_runtime(uint64_t address, uint64_t bytes) const {
  // No allocation crosses from one area into the other, so a range that does is a mistake.
  if (address < max_address())
    return within(min_address(), max_address(), address, bytes);
  return within(max_address(), max_address() + place_->bytes, address, bytes);
}

void mapped_memory::expect_bytes(std::span<const std::byte> range) const {
  ensure(range.empty() || (range.data() >= mapping_ && range.data() + range.size() <= mapping_ + 2 * place_->bytes),
         "a range that will be written lies within the memory");
  if (range.size() >= huge_pages::page_bytes)
    pages_.prepare(static_cast<uint64_t>(range.data() - mapping_), range.size());
}

caf::error mapped_memory::damage() const {
  if (!guard_.struck())
    return caf::none;
  return make_error(errc::device_lost,
                    fmt::format("{}: its memory file {} was cut, or its disk is full", text_of(id()), place_->file));
}

} // namespace ringmaster
