#pragma once

#include "runtime/memory/mapped_memory.hpp"
#include "runtime/memory/range_allocator.hpp"

#include <atomic>
#include <filesystem>
#include <mutex>

namespace ringmaster {

/// The memory of one device of this process: its file, and what of it is in use. The file goes with this object at the
/// latest, and with the device; what is mapped stays readable while it is held. Thread-safe, except for the bytes
/// themselves.
class device_memory : public mapped_memory {
public:
  struct options {
    device_id id;
    std::filesystem::path file; ///< It must not exist: an existing file is another device's.
    uint64_t min_address = 0;   ///< > 0
    uint64_t bytes = 0;         ///< > 0; of the user's range. The file is sparse and twice as long, and the disk has
                                ///< room for that when it is made; who else fills it later: see `damage`.
    link_place link = {};       ///< Of this process.
  };

  /// All bytes are 0. Errors: invalid_argument, io_error (with the file's name and the system's reason).
  static caf::expected<std::shared_ptr<device_memory>> open(const options& opts);

  ~device_memory() override;

  std::filesystem::path file() const { return place()->file; }
  /// The device has ended: no other process may map it from now on.
  void remove_file() noexcept;

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
  device_memory(memory_place place, std::byte* mapping);

  std::atomic<bool> removed_{false};
  mutable std::mutex mutex_;
  range_allocator user_;
  range_allocator scratch_;
};

} // namespace ringmaster
