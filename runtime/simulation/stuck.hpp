#pragma once

#include "runtime/simulation/timeline.hpp"

#include <span>
#include <string>

namespace ringmaster {

/// How far a rank is: the steps of its current round are [first, next).
struct rank_progress {
  uint32_t first = 0, next = 0;
  uint32_t open = 0; ///< Steps of the round that have not ended.
  picoseconds ended_at = 0;
  uint32_t ended_by = activity::none; ///< What ended last of the round.
};

/// For a simulation in which nothing can move any more: a sentence that names the broken links that somebody wants to
/// use, and who waits for whom.
std::string who_waits(const timeline& times, std::span<const rank_progress> ranks);

} // namespace ringmaster
