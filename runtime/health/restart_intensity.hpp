#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>

namespace ringmaster {

/// Tells restarts that help from restarts that do not: at most `restarts_max` within any `period`. A supervisor that
/// may not restart gives up. Pure: the time is passed in, and never runs backwards.
/// Source: Erlang/OTP's supervisor, "maximum restart intensity".
class restart_intensity {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using duration = std::chrono::nanoseconds;

  struct options {
    uint32_t restarts_max = 5; ///< 0: the first failure is the last.
    duration period = std::chrono::seconds{10};
  };

  explicit restart_intensity(options opts) : options_(opts) {}

  /// Counts a restart at `now`; false where it is one too many.
  bool allow(time_point now);

  /// Why the last call said what it said: "6 restarts within 10.0 s, 5 are allowed".
  std::string reason() const;

private:
  options options_;
  std::deque<time_point> restarts_; ///< Within the last period, at most restarts_max + 1.
};

/// What the end of a child says of its next start.
enum class restart_verdict : uint8_t {
  counts,   ///< It failed: as often as restart_intensity allows.
  pardoned, ///< That was no fault of its own: as often as it likes.
  starved   ///< It never ran, for the system lacks what it needs, and may have that again: later. See `restart_delay`.
};

/// How long a child waits that was starved `times` times in a row, from 1: 500 ms, then twice as long each time, and
/// `longest` at most.
restart_intensity::duration restart_delay(uint32_t times, restart_intensity::duration longest);

} // namespace ringmaster
