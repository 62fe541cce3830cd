#pragma once

#include <caf/timespan.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace ringmaster {

/// The limit of a message, in nanoseconds. A longer limit than a year becomes a year: the sum of the time and a limit
/// must not overflow, and 2^64 - 1 stands for no limit.
inline caf::timespan request_limit(uint64_t limit_ns) {
  constexpr uint64_t year_ns = uint64_t{365} * 24 * 3600 * 1000 * 1000 * 1000;
  return std::chrono::nanoseconds{static_cast<int64_t>(std::min(limit_ns, year_ns))};
}

/// The same for a limit of the caller's; a negative one becomes 0.
inline caf::timespan request_limit(caf::timespan limit) {
  return request_limit(static_cast<uint64_t>(std::max<int64_t>(limit.count(), 0)));
}

} // namespace ringmaster
