#pragma once

#include "runtime/health/restart_intensity.hpp"

#include <atomic>
#include <cstdint>

namespace ringmaster {

/// What the bulk connections of a process have done so far.
struct link_counts {
  std::atomic<uint64_t> bytes_sent{0};
  std::atomic<uint64_t> bytes_received{0};                 ///< Into place or into a reduction.
  std::atomic<uint64_t> late_frames{0};                    ///< Of blocks that were no longer wanted; they were dropped.
  std::atomic<uint64_t> damaged_frames{0};                 ///< Whose checksum was wrong; they were fetched again.
  std::atomic<uint64_t> connections_made{0};               ///< By us.
  std::atomic<uint64_t> connections_lost{0};               ///< Of those.
  std::atomic<uint64_t> strangers_refused{0};              ///< Who connected to us and were not what they should be.
  rate_limiter stranger_warnings{std::chrono::minutes{1}}; ///< Of the I/O thread.
};

} // namespace ringmaster
