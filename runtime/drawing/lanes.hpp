#pragma once

#include "runtime/drawing/walk_through.hpp"

namespace ringmaster {

/// Where a round's arrows are drawn: in lanes below each other, so that no two of them touch.
struct lane_plan {
  std::vector<uint32_t> lanes; ///< By activity of the round.
  uint32_t count = 0;
  std::vector<uint32_t> chain_starts; ///< Lanes that begin with what follows in a chain.
};

/// Arrows of one lane may meet at a rank, from both sides of it. What follows in a chain is below what it waits for;
/// short arrows are above long ones.
lane_plan lanes_of(const drawn_round& round);

} // namespace ringmaster
