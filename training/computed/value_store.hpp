#pragma once

#include "runtime/memory/range_allocator.hpp"
#include "training/language/executor.hpp"

#include <map>
#include <memory>
#include <span>

namespace ringmaster::training {

/// Where a value lies. Who holds it last gives the memory back.
struct value_block {
  std::byte* data = nullptr;
  uint64_t address = 0; ///< On the device; 0: on the host.
  uint64_t bytes = 0;
  uint64_t number = 0;            ///< No other block's.
  std::shared_ptr<void> keepsake; ///< What a layer's forward has left with its input.
};
using block_pointer = std::shared_ptr<value_block>;

/// The values of one rank, in a range of its device's memory. A value's token leads to its block; several may share
/// one, as long as none changes it. Not thread-safe; it outlives its blocks.
class value_store {
public:
  /// The range [address, address + memory.size()) of a device, and where this process has it.
  value_store(std::span<std::byte> memory, uint64_t address);
  /// On the device, of the range.
  uint64_t address() const { return address_; }

  /// A block, its bytes behind `used` zeroed; what a step leaves to the next one lies at the begin of the range, what
  /// is dropped before at its end, so that no holes are between. Errors: out_of_memory, with what is free.
  caf::expected<block_pointer> make(uint64_t bytes, uint64_t used, bool stays);
  block_pointer make_on_host(uint64_t bytes);

  /// A new token for it.
  uint64_t hold(block_pointer x);
  const block_pointer& at(uint64_t token) const { return held_.at(token); }
  void replace(uint64_t token, block_pointer x) { held_.at(token) = std::move(x); }
  void release(uint64_t token) noexcept { held_.erase(token); }

  uint64_t bytes_used() const { return free_->used(); }
  uint64_t bytes_peak() const { return peak_; }
  /// Of a range that all of it would have had room in, as it came and went: more than the peak, since holes stay free.
  /// At most all of the range, which it has filled from both sides where it is as small.
  uint64_t bytes_needed() const;

private:
  std::span<std::byte> memory_;
  uint64_t address_;
  std::shared_ptr<range_allocator> free_;
  uint64_t peak_ = 0;
  uint64_t from_begin_ = 0, from_end_ = 0; ///< As far as anything has lain, from each side, aligned.
  std::map<uint64_t, block_pointer> held_;
  uint64_t tokens_ = 0, blocks_ = 0;
};

} // namespace ringmaster::training
