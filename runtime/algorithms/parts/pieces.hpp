#pragma once

#include "runtime/schedule/collective.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace ringmaster {

/// What a pipelined algorithm takes where the request leaves the chunk to it, in elements: 128 KiB of float32, for
/// ranks of one process, whose pieces stay in the caches. Who knows the network says how large pieces are (`chunk_for`,
/// runtime/selection/selection.hpp).
inline constexpr uint64_t default_chunk = 32768;

/// A rank's steps are held in memory and its rounds counted in 32 bits: no rank's elements are cut into more pieces
/// than this, whatever chunk the request asks for.
inline constexpr uint64_t max_pieces = 65536;

/// Elements [start, start + count) cut into pieces of `chunk` elements that follow each other; the last may be shorter.
class pieces {
public:
  pieces(uint64_t start, uint64_t count, uint64_t chunk) : start_(start), count_(count), chunk_(chunk) {}

  /// The elements of a piece, where `count` elements are to be cut as `request` wants it: its chunk or the default, but
  /// not more than there are, and not so few that there would be more pieces than `most`. At least 1.
  static uint64_t chunk_of(const plan_request& request, uint64_t count, uint64_t most = max_pieces) {
    const auto wanted = request.chunk == 0 ? default_chunk : request.chunk;
    return std::max<uint64_t>(std::min(std::max(wanted, count / most + (count % most != 0 ? 1 : 0)), count), 1);
  }

  uint64_t chunk() const noexcept { return chunk_; }
  uint32_t size() const noexcept { return static_cast<uint32_t>(count_ / chunk_ + (count_ % chunk_ != 0 ? 1 : 0)); }

  /// Piece `index`; without elements where there is no such piece.
  block_range at(buffer where, uint32_t index) const {
    const auto before = std::min(index * chunk_, count_);
    return {where, start_ + before, std::min(chunk_, count_ - before)};
  }

private:
  uint64_t start_;
  uint64_t count_;
  uint64_t chunk_;
};

/// Where a rank's partial sum of a piece arises: in its place in the output, if the rank has one; else in one of two
/// slots of scratch alternately, as one piece comes in while the piece before it goes out.
class piece_sums {
public:
  static piece_sums in_output() { return {}; }
  static piece_sums in_scratch(schedule_builder& b, const pieces& cut) {
    piece_sums result;
    result.in_scratch_ = true;
    result.slot_ = cut.chunk();
    result.start_ = b.scratch(std::min<uint64_t>(cut.size(), 2) * cut.chunk());
    return result;
  }

  block_range at(const pieces& cut, uint32_t index) const {
    const auto piece = cut.at(buffer::output, index);
    return in_scratch_ ? block_range{buffer::scratch, start_ + index % 2 * slot_, piece.count} : piece;
  }

private:
  bool in_scratch_ = false;
  uint64_t start_ = 0;
  uint64_t slot_ = 0;
};

/// Blocks `first`, `first` + 1, ..., `length` of them, where block 0 follows the last: one range, and a second one,
/// otherwise empty, where they go past the end. `first` < size, `length` <= size.
inline std::array<block_range, 2> wrapped_blocks(const blocks& cut, buffer where, uint32_t first, uint32_t length) {
  const auto before_end = std::min(length, cut.size() - first);
  return {cut.range(where, first, first + before_end), cut.range(where, 0, length - before_end)};
}

/// Rounds of an algorithm that doubles in each: the smallest k with 2^k >= `world_size`.
inline uint32_t doublings(uint32_t world_size) {
  uint32_t k = 0;
  while ((uint64_t{1} << k) < world_size)
    ++k;
  return k;
}

} // namespace ringmaster
