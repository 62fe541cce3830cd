#pragma once

#include <ringmaster/collectives.hpp>
#include <ringmaster/ids.hpp>

#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace RINGMASTER_API {

struct client_state;

/// A range of a device's memory, freed by the destructor. One thread at a time, with the client that allocated it.
class device_memory {
public:
  device_memory() = default; ///< No memory.
  device_memory(device_memory&& other) noexcept;
  device_memory& operator=(device_memory&& other) noexcept;
  ~device_memory();

  device_id device() const noexcept { return device_; }   ///< The device that the memory is of.
  uint64_t address() const noexcept { return address_; } ///< Of its first byte.
  uint64_t bytes() const noexcept { return bytes_; }      ///< Its size.

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
    return read<T>(bytes_ / sizeof(T));
  }

  /// Copies bytes to the memory, from byte `offset` on. Errors as of `write`.
  expected<void> write_bytes(std::span<const std::byte> bytes, uint64_t offset = 0);
  /// Copies bytes from the memory, from byte `offset` on. Errors as of `read`.
  expected<void> read_bytes(std::span<std::byte> bytes, uint64_t offset = 0) const;

  /// Internal.
  device_memory(std::shared_ptr<client_state> owner, device_id device, uint64_t address, uint64_t bytes)
    : owner_(std::move(owner)), device_(device), address_(address), bytes_(bytes) {}

private:
  std::shared_ptr<client_state> owner_;
  device_id device_{};
  uint64_t address_ = 0, bytes_ = 0;
};

} // namespace RINGMASTER_API
