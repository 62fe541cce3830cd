#pragma once

#include "runtime/memory/range_allocator.hpp"
#include "training/language/executor.hpp"

#include <map>
#include <memory>
#include <span>
#include <tuple>

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

/// A part of the model, or of what the optimizer keeps for it.
struct kept_part {
  value_kind kind{};
  uint32_t layer = 0;
  shard part{};
  shard tensor{};

  friend bool operator<(const kept_part& a, const kept_part& b) { return a.sorted_by() < b.sorted_by(); }
  bool operator==(const kept_part&) const = default;
  std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, value_kind> sorted_by() const {
    return {layer, tensor.count, tensor.index, part.count, part.index, kind};
  }
};

inline kept_part part_of(const value_tag& x) {
  return {x.kind, x.layer, x.part, x.tensor};
}

inline value_tag tag_of(const kept_part& x) {
  return value_tag{.kind = x.kind, .layer = x.layer, .part = x.part, .tensor = x.tensor};
}

/// In place of a layer's number: no layer.
inline constexpr uint32_t no_layer = UINT32_MAX;

/// What a rank keeps from one training step to the next: its parts of the model as they were before the step under way,
/// and what that step has made so far. So a step can be given up at any operation, and repeated.
class kept_values {
public:
  using parts = std::map<kept_part, block_pointer>;

  /// Step `step` is about to run. It starts with what the step before it has made. A step that is repeated starts with
  /// what it started with before, without parts that came from other ranks: other ranks may need other parts. Errors:
  /// invalid_argument, if neither is available.
  caf::error begin(uint64_t step);
  /// A part that the step starts with; null: this rank does not have it.
  block_pointer find(const kept_part& what) const;
  /// The step has made this part.
  void stage(const kept_part& what, block_pointer x);
  /// A part that the step starts with came from another rank or the host, or is a first weight.
  void restore(const kept_part& what, block_pointer x);
  /// A part that is kept has moved to another block; null: it is about to.
  void replace(const kept_part& what, block_pointer x);
  /// All parts that this step starts with will come from elsewhere.
  void forget(uint64_t step);

  /// The step that starts with what is kept.
  uint64_t step() const { return step_; }
  const parts& kept() const { return kept_; }
  /// What that step has made so far.
  const parts& made() const { return staged_; }

private:
  /// What holds when a step starts.
  void check() const;

  uint64_t step_ = 0;
  parts kept_, staged_, restored_; ///< `restored_` is a subset of `kept_`.
};

} // namespace ringmaster::training
