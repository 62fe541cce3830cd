#pragma once

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>

namespace ringmaster {

/// How large the pieces of a large copy are, each a message. Other messages wait for those that are under way, so
/// on a slow link pieces are small; on a fast one they are as large as a huge page, which is made as one when all of it
/// is about to be written. The first is measured alone. Sizes are powers of two. Pure.
class copy_pace {
public:
  static constexpr uint64_t bytes_min = 256u << 10, bytes_max = 2u << 20;
  static constexpr std::chrono::milliseconds quick{15}, slow{40}; ///< From its start to its answer.

  uint64_t bytes() const { return bytes_; }
  size_t under_way_max() const { return is_known_ ? 2 : 1; }
  void took(std::chrono::nanoseconds time) {
    is_known_ = true;
    if (time < quick)
      bytes_ = std::min(2 * bytes_, bytes_max);
    else if (time > slow)
      bytes_ = std::max(bytes_ / 2, bytes_min);
    ensure(std::has_single_bit(bytes_) && bytes_ >= bytes_min && bytes_ <= bytes_max, "a piece is a power of two");
  }

private:
  uint64_t bytes_ = bytes_max;
  bool is_known_ = false;
};

} // namespace ringmaster
