#pragma once

#include "runtime/schedule/collective.hpp"

#include <cstdint>
#include <vector>

namespace ringmaster {

/// The three buffers of a rank. Input and output never overlap here: an in-place operation runs into a shadow
/// of its output, which takes the output's place when the outcome is certain.
enum class buffer : uint8_t { input, output, scratch };

/// `count` elements from element `offset` of a buffer.
struct block_range {
  buffer where = buffer::input;
  uint64_t offset = 0;
  uint64_t count = 0;

  friend bool operator==(const block_range&, const block_range&) = default;
};

enum class action : uint8_t {
  send,        ///< `source` goes to `peer`.
  recv,        ///< `destination` comes from `peer`.
  recv_reduce, ///< destination[i] = op(incoming[i], source[i]), the incoming block being `peer`'s.
  copy,        ///< destination[i] = source[i], on this rank.
  reduce,      ///< destination[i] = op(destination[i], source[i]), on this rank.
  fold         ///< destination[i] = source[i] op source[n + i] op source[2n + i] ..., n being destination.count, from
               ///< left to right, on this rank. Small floats stay float32 up to the end of it, and are rounded once.
};

/// One thing a rank does. The k-th send from a to b meets the k-th recv or recv_reduce of b from a.
struct step {
  action what = action::send;
  uint32_t round = 0;
  uint32_t peer = 0; ///< Another rank; for copy, reduce and fold the rank itself.
  block_range source{};
  block_range destination{};
  bool finish = false; ///< The reduction of this block ends here: AVG divides by the world size.
  bool then = false;   ///< It starts when the step before it in the list has ended, which is of the same round.

  friend bool operator==(const step&, const step&) = default;
};

/// What one rank does, as rounds. The steps of a round start together (but those marked `then`) and may end in any
/// order; the next round starts when all have ended. A send ends when the peer has read the block. Steps of one round
/// may therefore read the same range, but none may write what another one reads or writes, unless a chain of `then`
/// lies between the two. A step that reduces works element by element, so its own source and destination may be the
/// same range exactly, and may not overlap otherwise. No step writes the input, and none is empty. A rank may have
/// nothing to do in a round.
struct schedule {
  uint32_t rounds = 0;        ///< The same on every rank.
  uint64_t scratch_count = 0; ///< Elements of scratch the rank needs.
  std::vector<step> steps;    ///< Sorted by round.

  friend bool operator==(const schedule&, const schedule&) = default;
};

/// Block `index` of `count` elements cut into `blocks` nearly equal parts; the first `count % blocks` of them are
/// one element larger.
block_range block_of(buffer where, uint64_t count, uint32_t blocks, uint32_t index);

} // namespace ringmaster
