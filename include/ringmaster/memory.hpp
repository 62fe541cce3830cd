#pragma once

#include <ringmaster/collectives.hpp>
#include <ringmaster/ids.hpp>
#include <ringmaster/owning_handle.hpp>

#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace RINGMASTER_API {

/// A range of a device's memory, freed by the destructor. One thread at a time, with the client that allocated it.
class device_memory {
public:
  device_memory() = default; ///< No memory.

  device_id device() const noexcept { return its_->device; }  ///< The device that the memory is of.
  uint64_t address() const noexcept { return its_->address; } ///< Of its first byte.
  uint64_t bytes() const noexcept { return its_->bytes; }     ///< Its size.

  /// Copies elements to the memory, from element `offset` on, after what the device's default stream has queued.
  /// Errors: out_of_range where they do not fit; device_lost.
  template <class T>
  expected<void> write(std::span<const T> values, uint64_t offset = 0) {
    static_assert(std::is_trivially_copyable_v<T>);
    return write_bytes(std::as_bytes(values), offset * sizeof(T));
  }
  /// \copydoc write
  template <class T>
  expected<void> write(const std::vector<T>& values, uint64_t offset = 0) {
    return write(std::span<const T>{values}, offset);
  }

  /// Copies `count` elements from the memory, from element `offset` on. Errors: out_of_range, device_lost.
  template <class T>
  expected<std::vector<T>> read(uint64_t count, uint64_t offset = 0) const {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> result(count);
    if (auto done = read_bytes(std::as_writable_bytes(std::span{result}), offset * sizeof(T)); !done)
      return done.error();
    return result;
  }
  /// All elements.
  template <class T>
  expected<std::vector<T>> read() const {
    return read<T>(bytes() / sizeof(T));
  }

  /// Copies bytes to the memory, from byte `offset` on. Errors as of `write`.
  expected<void> write_bytes(std::span<const std::byte> bytes, uint64_t offset = 0);
  /// Copies bytes from the memory, from byte `offset` on. Errors as of `read`.
  expected<void> read_bytes(std::span<std::byte> bytes, uint64_t offset = 0) const;

  /// Internal.
  device_memory(std::shared_ptr<client_state> owner, device_id device, uint64_t address, uint64_t bytes)
    : its_(std::move(owner), {device, address, bytes}) {}

private:
  struct range {
    device_id device{};
    uint64_t address = 0, bytes = 0;

    void give_back(client_state& client) const;
  };

  owning_handle<range> its_;
};

} // namespace RINGMASTER_API
