#pragma once

#include "runtime/simulation/timeline.hpp"

namespace ringmaster {

/// A piece of the longest chain of activities, each of which the next one waited for.
struct path_part {
  enum class kind : uint8_t { message, reduction, copy };

  kind what = kind::message;
  uint32_t source = 0, destination = 0;
  uint32_t round = 0; ///< The source's.
  uint64_t bytes = 0;
  picoseconds start = 0;
  picoseconds transfer = 0; ///< How long ports, or the rank itself, were occupied.
  picoseconds latency = 0;  ///< 0 where the next one waited for a port only.
};

/// The chain from time 0 to the end of activity `last` at `end`: the parts follow each other without a gap.
std::vector<path_part> critical_path_to(const timeline& times, uint32_t last, picoseconds end);

/// What a chain of activities took, in sum.
struct path_summary {
  uint64_t messages = 0, reductions = 0, copies = 0;
  picoseconds transfer = 0; ///< Of messages.
  picoseconds latency = 0;
  picoseconds work = 0; ///< Of reductions and copies.
};

path_summary summary_of(const std::vector<path_part>& path);

} // namespace ringmaster
