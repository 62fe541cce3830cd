#pragma once

#include "messages/memory_place.hpp"
#include "runtime/memory/mapping_guard.hpp"

#include <caf/expected.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace ringmaster {

/// Puts a mapped file on the processor's huge pages, 2 MiB each, where the system lets it (Linux 6.1 and later, a file
/// in a tmpfs such as /dev/shm): fewer entries for the processor to look up, and one fault instead of 512. The first
/// use of 32 MiB takes 3 ms, not 29, and sums of eight inputs past the caches 0.85 of the time.
/// A page that was used is left alone, since its bytes would have to be moved, and so is a page of which only
/// a part is asked for: the file stays sparse. Thread-safe.
class huge_pages {
public:
  static constexpr uint64_t page_bytes = 2u << 20;

  /// A shared mapping of the file's first `bytes`, placed such that huge pages fit; MAP_FAILED, and errno, where the
  /// system has no room. `protection`: as mmap takes it.
  static std::byte* map(int file, uint64_t bytes, int protection);

  huge_pages(std::byte* mapping, uint64_t bytes);

  /// [offset, offset + bytes) of the mapping is about to be used. Never fails: without huge pages it has small ones.
  void prepare(uint64_t offset, uint64_t bytes);

private:
  bool claim(uint64_t page);

  std::byte* mapping_;
  std::unique_ptr<std::atomic<uint64_t>[]> asked_; ///< A bit a page.
  std::atomic<bool> refused_{false};
};

/// How far a communicator is with shared-memory operations, as it marks it in the memory of one of its ranks: there it
/// outlives the communicator's process. An operation's data is being moved where `moving` is above `moved`.
struct operation_mark {
  std::atomic<uint64_t> communicator; ///< 0: free.
  std::atomic<uint64_t> moving;       ///< The latest operation whose data it has begun to move.
  std::atomic<uint64_t> moved;        ///< The latest whose data is in place.
  uint64_t unused;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(operation_mark) == 32);

/// The memory of one device as this process sees it: a mapped file, which its owner's process maps (device_memory) and
/// others on the host may (memory_neighbours). Device addresses are numbers in [min_address, max_address), never host
/// pointers. Above max_address lies a scratch area of the same size, which the runtime uses for shadows of outputs
/// and which no user can address. The mapping lives as long as anybody holds it: a block can be read although the
/// device's actor, or its process, has died.
/// Thread-safe, but for the bytes themselves: who may touch which range when is the streams' affair.
class mapped_memory {
public:
  enum class access { read, write };

  /// Another process's. Errors: unreachable, with the reason.
  static caf::expected<std::shared_ptr<mapped_memory>> reach(const memory_place& place, access what);

  mapped_memory(const mapped_memory&) = delete;
  mapped_memory& operator=(const mapped_memory&) = delete;
  virtual ~mapped_memory();

  device_id id() const noexcept { return place_->device; }
  uint64_t min_address() const noexcept { return place_->min_address; }
  uint64_t max_address() const noexcept { return place_->min_address + place_->bytes; }
  const std::shared_ptr<const memory_place>& place() const noexcept { return place_; }

  /// The bytes [address, address + bytes) of the user's range. A range of zero bytes may start at max_address.
  /// Errors: out_of_range, naming the device, the address, the size and the valid range; it says so where the address
  /// wraps around.
  caf::expected<std::span<std::byte>> at(uint64_t address, uint64_t bytes) const;

  /// The same, scratch area included: for the runtime's own addresses only. A range lies in one of the two areas; one
  /// that crosses max_address is out_of_range.
  caf::expected<std::span<std::byte>> at_runtime(uint64_t address, uint64_t bytes) const;

  /// A range that `at` or `at_runtime` gave is about to be written: puts the unused parts of it on huge pages.
  void expect_bytes(std::span<const std::byte> range) const;

  /// The mark of a communicator. Null: there is none; with `claim`, all are other communicators'.
  operation_mark* mark_of(communicator_id communicator, bool claim) const;
  /// The communicator has ended.
  void free_mark(communicator_id communicator) const;

  /// Size of the file of a memory with this number of bytes in the user's range: the same number of scratch bytes, and
  /// a page of marks.
  static constexpr uint64_t file_bytes(uint64_t bytes) { return marks_offset(bytes) + marks_bytes; }

  /// The file was cut, or its disk is full: what is here is not what the device holds, and what is written is lost.
  /// Errors: device_lost.
  caf::error damage() const;

protected:
  /// Takes the mapping over. What happens to the file must not end this process.
  mapped_memory(memory_place place, std::byte* mapping);

private:
  static constexpr uint64_t marks_bytes = 4096;
  static constexpr uint64_t marks_offset(uint64_t bytes) {
    return (2 * bytes + marks_bytes - 1) / marks_bytes * marks_bytes;
  }
  std::span<operation_mark> marks() const;
  caf::expected<std::span<std::byte>> within(uint64_t begin, uint64_t end, uint64_t address, uint64_t bytes) const;

  std::shared_ptr<const memory_place> place_;
  std::byte* mapping_;
  mutable huge_pages pages_;
  mapping_guard guard_;
};

/// A number of the kernel that runs here: processes with the same number are on one host. 0: unknown.
uint64_t this_host();

/// The memory file of a device, in the directory of its process.
std::filesystem::path memory_file(const std::filesystem::path& directory, device_id id);

/// "device 0x3"
std::string text_of(device_id id);

} // namespace ringmaster
