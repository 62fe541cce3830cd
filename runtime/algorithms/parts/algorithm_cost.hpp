#pragma once

#include "runtime/schedule/schedule.hpp"

#include <cstdint>

namespace ringmaster {

/// What an algorithm takes, over all ranks. On a uniform network, where each rank has one port out and one in, a
/// message of b bytes keeps both busy for b / bandwidth and arrives after another latency, and no rank computes, it
/// takes latencies x latency + serial_elements x element size / bandwidth: exactly where all blocks have the same size,
/// else no more.
struct algorithm_cost {
  uint64_t rounds = 0;
  uint64_t elements = 0; ///< Sent by the rank that sends most.
  uint64_t messages = 0; ///< Sent or received by the rank that has most of them in one direction.
  uint64_t latencies = 0;
  uint64_t serial_elements = 0;

  friend bool operator==(const algorithm_cost&, const algorithm_cost&) = default;
};

} // namespace ringmaster
