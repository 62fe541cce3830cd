#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace ringmaster {

/// Suspects one device of hanging or being too slow, from its answers to progress requests: X of the last Y were late.
/// A request is late when no answer came within `late_after`, or when the answer says that the device has owed its next
/// move for longer than that. Pure: the caller passes the time in, and the verdict carries its reason.
class suspicion {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using duration = std::chrono::nanoseconds;

  struct options {
    duration interval = std::chrono::milliseconds{100};   ///< Between two requests.
    duration late_after = std::chrono::milliseconds{500};
    uint32_t late = 3;   ///< X, 1..window
    uint32_t window = 5; ///< Y, 1..64
  };

  struct verdict {
    bool suspected = false;
    std::string reason; ///< "3 of its last 5 answers were late (no answer to request 17 for 1.2 s)"
  };

  explicit suspicion(options opts) : options_(opts) {}

  void on_request(uint64_t number, time_point now);
  /// `busy_for`: how long the device has owed the next move, zero where it waits for somebody else.
  void on_answer(uint64_t number, duration busy_for, time_point now);

  /// Judges at `now`. Where the caller's own clock tick came late by more than `late_after`, it was the observer that
  /// stood still: what was pending then starts afresh and counts neither way.
  verdict evaluate(time_point now);

private:
  options options_;
  // written by the implementation
};

} // namespace ringmaster
