#pragma once

#include <caf/binary_deserializer.hpp>
#include <caf/error.hpp>
#include <caf/meta/type_name.hpp>
#include <caf/sec.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace ringmaster {

/// Immutable bytes shared by every copy: the bulk that travels beside a message. Copying is O(1); on the wire
/// it is one raw block.
class byte_block {
public:
  byte_block() = default;

  /// `size` bytes, not yet written: fill them through `bytes` before anybody else sees the block.
  static byte_block uninitialized(size_t size, std::byte*& bytes) {
    std::shared_ptr<std::byte[]> memory{new std::byte[size]};
    bytes = memory.get();
    return {std::move(memory), bytes, size};
  }

  /// The elements of `values`, which the block keeps; nothing is copied.
  template <class T>
  static byte_block of(std::vector<T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    auto owner = std::make_shared<const std::vector<T>>(std::move(values));
    auto bytes = std::as_bytes(std::span{*owner});
    return {std::move(owner), bytes.data(), bytes.size()};
  }

  /// The bytes [offset, offset + size) of this block, which must hold them; nothing is copied.
  byte_block part(size_t offset, size_t size) const { return {owner_, data_ + offset, size}; }

  size_t size() const noexcept { return size_; }
  const std::byte* data() const noexcept { return data_; }
  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

  /// The bytes as elements. The size must be a multiple of sizeof(T).
  template <class T>
  std::span<const T> as() const noexcept {
    return {reinterpret_cast<const T*>(data_), size_ / sizeof(T)};
  }

  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, byte_block& x) {
    uint64_t size = x.size_;
    if constexpr (!std::is_same_v<typename Inspector::result_type, caf::error>) {
      return f(caf::meta::type_name("byte_block"), size); // for logs: never the data
    } else if constexpr (Inspector::reads_state) {
      if (auto err = f(size))
        return err;
      return size == 0 ? caf::none : f.apply_raw(size, const_cast<std::byte*>(x.data_));
    } else {
      if (auto err = f(size))
        return err;
      // Nothing is reserved for bytes that have not come: what a peer claims may be more than there is memory.
      if constexpr (std::is_base_of_v<caf::deserializer, Inspector>)
        if (auto* source = dynamic_cast<caf::binary_deserializer*>(&f); source && size > source->remaining())
          return caf::sec::end_of_stream;
      std::byte* bytes = nullptr;
      auto block = uninitialized(size, bytes);
      if (size != 0)
        if (auto err = f.apply_raw(size, bytes))
          return err;
      x = std::move(block);
      return caf::none;
    }
  }

private:
  byte_block(std::shared_ptr<const void> owner, const std::byte* data, size_t size)
    : owner_(std::move(owner)), data_(data), size_(size) {}

  std::shared_ptr<const void> owner_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

} // namespace ringmaster
