#pragma once

#include "runtime/simulation/timeline.hpp"

#include <span>
#include <string>

namespace ringmaster {

/// The progress of a rank: the steps of its current round are [first, next).
struct rank_progress {
  uint32_t first = 0, next = 0;
  uint32_t open = 0; ///< Steps of the round that have not ended.
  picoseconds ended_at = 0;
  uint32_t ended_by = activity::none; ///< The activity of the round that ended last.
};

/// For a deadlock: a sentence with the broken links that ranks want to use, and which ranks wait for which.
std::string who_waits(const timeline& times, std::span<const rank_progress> ranks);

} // namespace ringmaster
