#pragma once

#include "messages/ids.hpp"
#include "runtime/memory/huge_pages.hpp"
#include "runtime/memory/range_allocator.hpp"

#include <caf/expected.hpp>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>

namespace ringmaster {

/// The memory of one device: a mapped file. Device addresses are numbers in [min_address, max_address), never host
/// pointers. Above max_address lies a scratch area of the same size, which the runtime uses for shadows of outputs
/// and which no user can address. The file outlives this object, and the mapping lives as long as anybody holds it:
/// a block can be read although the device's actor has died.
/// Thread-safe, but for the bytes themselves: who may touch which range when is the streams' affair.
class device_memory {
public:
  struct options {
    device_id id;
    std::filesystem::path file; ///< Created if missing, with its directories. Of another size, it is resized and keeps
                                ///< the user's bytes that both sizes have.
    uint64_t min_address = 0;   ///< > 0
    uint64_t bytes = 0;         ///< > 0; of the user's range. The file is sparse and twice as long; the disk must have
                                ///< room for that, since a mapped file on a full disk ends the process.
  };

  /// The bytes are those the file held, or 0; allocations are not remembered.
  /// Errors: invalid_argument, io_error (with the file's name and the system's reason).
  static caf::expected<std::shared_ptr<device_memory>> open(const options& opts);

  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;
  ~device_memory();

  device_id id() const noexcept;
  uint64_t min_address() const noexcept;
  uint64_t max_address() const noexcept;
  const std::filesystem::path& file() const noexcept;

  /// The bytes [address, address + bytes) of the user's range. A range of zero bytes may start at max_address.
  /// Errors: out_of_range, naming the device, the address, the size and the valid range; it says so where the address
  /// wraps around.
  caf::expected<std::span<std::byte>> at(uint64_t address, uint64_t bytes) const;

  /// The same, scratch area included: for the runtime's own addresses only. A range lies in one of the two areas; one
  /// that crosses max_address is out_of_range.
  caf::expected<std::span<std::byte>> at_runtime(uint64_t address, uint64_t bytes) const;

  /// A range that `at` or `at_runtime` gave is about to be written: puts it on huge pages where nobody has used it yet.
  void expect_bytes(std::span<const std::byte> range) const;

  /// A range of its own in the user's range. Errors: out_of_memory (asked, free, largest block),
  /// invalid_argument (alignment no power of two, zero bytes).
  caf::expected<uint64_t> allocate(uint64_t bytes, uint64_t alignment = 256);
  /// Errors: invalid_argument where `address` is not the start of an allocation.
  caf::error free(uint64_t address);

  /// The same in the scratch area.
  caf::expected<uint64_t> allocate_scratch(uint64_t bytes);
  caf::error free_scratch(uint64_t address);
  /// Bytes of scratch in use.
  uint64_t scratch_used() const;

private:
  device_memory(const options& opts, std::byte* mapping);
  caf::expected<std::span<std::byte>> within(uint64_t begin, uint64_t end, uint64_t address, uint64_t bytes) const;

  options options_;
  std::byte* mapping_;
  mutable huge_pages pages_;
  mutable std::mutex mutex_;
  range_allocator user_;
  range_allocator scratch_;
};

} // namespace ringmaster
