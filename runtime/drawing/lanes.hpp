#pragma once

#include "runtime/drawing/walk_through.hpp"

namespace ringmaster {

/// The lanes in which a round's arrows are drawn, so that no two of them touch.
struct lane_plan {
  std::vector<uint32_t> lanes; ///< By activity.
  uint32_t count = 0;
  std::vector<uint32_t> chain_starts; ///< The first lanes of later links of a chain.
};

/// Arrows of one lane may meet at a rank from both sides. A step of a chain is below the step it waits for; short
/// arrows are above long ones.
lane_plan lanes_of(const drawn_round& round);

} // namespace ringmaster
