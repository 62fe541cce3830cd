#pragma once

#include "runtime/simulation/timeline.hpp"

namespace ringmaster {

/// A part of the longest chain of activities, in which each waits for the one before it.
struct path_part {
  enum class kind : uint8_t { message, reduction, copy };

  kind what = kind::message;
  uint32_t source = 0, destination = 0;
  uint32_t round = 0; ///< The source's.
  uint64_t bytes = 0;
  picoseconds start = 0;
  picoseconds transfer = 0; ///< The time for which ports, or the rank, were occupied.
  picoseconds latency = 0;  ///< 0 if the next part waited for a port only.
};

/// The chain from time 0 to the end of activity `last` at `end`, without gaps.
std::vector<path_part> critical_path_to(const timeline& times, uint32_t last, picoseconds end);

/// The sums over a chain.
struct path_summary {
  uint64_t messages = 0, reductions = 0, copies = 0;
  picoseconds transfer = 0; ///< Of messages.
  picoseconds latency = 0;
  picoseconds work = 0; ///< Of reductions and copies.
};

path_summary summary_of(const std::vector<path_part>& path);

} // namespace ringmaster
