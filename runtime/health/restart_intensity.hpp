#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>

namespace ringmaster {

/// Limit on restarts: at most `restarts_max` within any `period`. A supervisor that may not restart gives up. Pure: the
/// time is passed in, and never runs backwards. Source: Erlang/OTP's supervisor, "maximum restart intensity".
class restart_intensity {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using duration = std::chrono::nanoseconds;

  struct options {
    uint32_t restarts_max = 5; ///< 0: the first failure is the last.
    duration period = std::chrono::seconds{10};
  };

  explicit restart_intensity(options opts) : options_(opts) {}

  /// Counts a restart at `now`; false if it is one too many.
  bool allow(time_point now);

  /// The reason of the last result: "6 restarts within 10.0 s, 5 are allowed".
  std::string reason() const;

private:
  options options_;
  std::deque<time_point> restarts_; ///< Within the last period, at most restarts_max + 1.
};

/// What the end of a child means for its next start.
enum class restart_verdict : uint8_t {
  counts,   ///< It failed: it starts again if restart_intensity allows.
  pardoned, ///< Not its own fault: it starts again without a limit.
  starved   ///< It never ran, because the system lacks resources for now: it starts later. See `restart_delay`.
};

/// How long a child waits that was starved `times` times in a row, from 1: 500 ms, then twice as long each time, and
/// `longest` at most.
restart_intensity::duration restart_delay(uint32_t times, restart_intensity::duration longest);

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
