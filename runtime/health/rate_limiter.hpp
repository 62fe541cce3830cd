#pragma once

#include <chrono>
#include <cstdint>

namespace ringmaster {

/// Rate limiter for log lines that outside events can trigger: one now and then, with how often the event happened. Not
/// thread-safe.
class rate_limiter {
public:
  using time_point = std::chrono::steady_clock::time_point;

  explicit rate_limiter(std::chrono::seconds between) : between_(between) {}

  /// The event has happened. Returns how often since the last line, if a line is due now; else 0.
  uint64_t happened(time_point now) {
    ++unreported_;
    if (settings_ && now < last_ + between_)
      return 0;
    settings_ = true;
    last_ = now;
    auto result = unreported_;
    unreported_ = 0;
    return result;
  }

private:
  std::chrono::seconds between_;
  uint64_t unreported_ = 0;
  bool settings_ = false;
  time_point last_;
};

} // namespace ringmaster
