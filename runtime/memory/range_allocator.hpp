#pragma once

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <cstdint>
#include <map>
#include <optional>

namespace ringmaster {

/// Hands out ranges of the addresses [begin, end). First fit by address: low addresses are used again first, which
/// keeps their sparse file small; or from the end, for short-lived ranges among long-lived ones. Neighbouring free
/// blocks are always merged. It knows numbers only, no memory. Not thread-safe.
class range_allocator {
public:
  enum class side : uint8_t { begin, end };

  /// `begin` <= `end`.
  range_allocator(uint64_t begin, uint64_t end);

  /// The start of a range of `bytes` bytes, a multiple of `alignment`. What alignment skips stays free.
  /// Errors: invalid_argument (zero bytes, alignment no power of two), too_large, out_of_memory (with what was asked,
  /// what is free and the largest free block).
  caf::expected<uint64_t> allocate(uint64_t bytes, uint64_t alignment, side from = side::begin);

  /// Frees the range that starts at `address`. Errors: invalid_argument if none starts there.
  caf::error free(uint64_t address);

  uint64_t used() const noexcept { return used_; }
  uint64_t free_bytes() const noexcept { return end_ - begin_ - used_; }

  /// Bytes of the largest free block, before alignment.
  uint64_t largest() const noexcept;

private:
  std::optional<uint64_t> found_from_begin(uint64_t bytes, uint64_t alignment) const;
  std::optional<uint64_t> found_from_end(uint64_t bytes, uint64_t alignment) const;
  void take(std::map<uint64_t, uint64_t>::iterator block, uint64_t start, uint64_t end);

  uint64_t begin_;
  uint64_t end_;
  uint64_t used_ = 0;
  std::map<uint64_t, uint64_t> free_;      // start to end; never two that touch
  std::map<uint64_t, uint64_t> allocated_; // start to end
};

} // namespace ringmaster
