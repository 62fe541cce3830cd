#pragma once

#include "training/computed/training_job.hpp"

namespace ringmaster::training {

/// An activation, or a gradient by one, as a matrix of a row a sample. A column shard lies as a matrix of its own
/// columns; all shards take as much memory as the widest, so what lies behind the others' is padding.
struct column_shards {
  uint64_t rows = 0;
  uint64_t row_bytes = 0; ///< Of the whole.
  uint64_t element_bytes = 0;
  uint32_t count = 1; ///< Shards.

  /// Of what `x` is, or is a shard of, in so many.
  column_shards(const training_job& job, const value_tag& x, uint32_t shards);

  /// Of one shard: its columns, and its memory with the padding.
  uint64_t bytes_filled(uint32_t index) const;
  uint64_t bytes_each() const;

  /// From the whole to one shard, or back. The padding is made 0.
  void take(uint32_t index, const std::byte* whole, std::byte* shard) const;
  void put(uint32_t index, const std::byte* shard, std::byte* whole) const;
};

} // namespace ringmaster::training
