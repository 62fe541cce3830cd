#pragma once

#include "runtime/memory/range_allocator.hpp"
#include "training/language/executor.hpp"

#include <map>
#include <memory>
#include <span>

namespace ringmaster::training {

/// The memory of a value. The last owner frees it.
struct value_block {
  std::byte* data = nullptr;
  uint64_t address = 0; ///< On the device; 0: on the host.
  uint64_t bytes = 0;
  uint64_t number = 0;            ///< Unique.
  std::shared_ptr<void> keepsake; ///< What a layer's forward pass keeps with its input.
};
using block_pointer = std::shared_ptr<value_block>;

/// The values of one rank, in a range of its device's memory. A value's token leads to its block; several values may
/// share a block as long as none changes it. Not thread-safe; it outlives its blocks.
class value_store {
public:
  /// The range [address, address + memory.size()) of a device, mapped at `memory` in this process.
  value_store(std::span<std::byte> memory, uint64_t address);
  /// Of the range, on the device.
  uint64_t address() const { return address_; }

  /// A block; its bytes after the first `used` are set to 0. Blocks that live on after the step are at the begin of the
  /// range, and others at its end, so that there are no holes between them. Errors: out_of_memory, with what is free.
  caf::expected<block_pointer> make(uint64_t bytes, uint64_t used, bool stays);
  block_pointer make_on_host(uint64_t bytes);

  /// A new token for it.
  uint64_t hold(block_pointer x);
  const block_pointer& at(uint64_t token) const;
  void replace(uint64_t token, block_pointer x);
  void release(uint64_t token) noexcept { held_.erase(token); }

  uint64_t bytes_used() const { return free_->used(); }
  uint64_t bytes_peak() const { return peak_; }
  /// The smallest range in which all blocks would have fitted, with the same allocations: more than the peak, because
  /// of holes. At most the whole range.
  uint64_t bytes_needed() const;

private:
  std::span<std::byte> memory_;
  uint64_t address_;
  std::shared_ptr<range_allocator> free_;
  uint64_t peak_ = 0;
  uint64_t from_begin_ = 0, from_end_ = 0; ///< The most that was in use, from either side, aligned.
  std::map<uint64_t, block_pointer> held_;
  uint64_t tokens_ = 0, blocks_ = 0;
};

} // namespace ringmaster::training
