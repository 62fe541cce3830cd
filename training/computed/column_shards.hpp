#pragma once

#include "training/computed/training_job.hpp"

namespace ringmaster::training {

/// An activation, or its gradient, as a matrix with one row for each sample. A column shard is stored as a matrix of
/// its own columns. All shards take as much memory as the widest one: narrower shards end in padding.
struct column_shards {
  uint64_t rows = 0;
  uint64_t row_bytes = 0; ///< Of the whole.
  uint64_t element_bytes = 0;
  uint32_t count = 1; ///< The number of shards.

  /// The shards of `x`, or of the value of which `x` is a shard.
  column_shards(const training_job& job, const value_tag& x, uint32_t shards);

  /// Of one shard: its columns, and its memory with the padding.
  uint64_t bytes_filled(uint32_t index) const;
  uint64_t bytes_each() const;

  /// Copies from the whole to one shard, or back. `take` sets the padding to 0.
  void take(uint32_t index, const std::byte* whole, std::byte* shard) const;
  void put(uint32_t index, const std::byte* shard, std::byte* whole) const;
};

} // namespace ringmaster::training
