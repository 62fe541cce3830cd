#pragma once

#include "runtime/reduction/reducer.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace ringmaster {

/// Where a block goes when it arrives: into `out`, or reduced with `operand` into `out`. The caller has checked
/// that both hold the whole block.
struct block_sink {
  std::byte* out = nullptr;
  const std::byte* operand = nullptr; ///< nullptr: copy
  const reducer* combine = nullptr;   ///< With an operand.
  double factor = 1;                  ///< Other than 1, a copy is multiplied by it; elements of `datatype`.
  proto::DataType datatype = proto::FLOAT64;
  /// By which what comes and the operand are multiplied: `reducer::scale_before`. After `factor`.
  double scale = 1, operand_scale = 1;

  /// Takes the bytes that start `offset` bytes into the block; whole elements.
  void put(uint64_t offset, std::span<const std::byte> bytes) const;
  /// Whether a byte is put by being in its place in `out`.
  bool is_plain() const { return operand == nullptr && factor == 1 && scale == 1; }
  /// Bytes of an element; 1 where bytes are only copied.
  uint64_t unit() const { return is_plain() ? 1 : size_of(operand != nullptr ? combine->datatype() : datatype); }
};

} // namespace ringmaster
