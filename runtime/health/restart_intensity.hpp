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

} // namespace ringmaster
