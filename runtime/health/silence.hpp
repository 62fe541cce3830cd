#pragma once

#include "runtime/invariants/ensure.hpp"

#include <chrono>
#include <optional>

namespace ringmaster {

/// How long a process that is asked again and again has not answered. Pure: the caller passes the time in.
class silence {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using duration = std::chrono::nanoseconds;

  void on_request(time_point now) {
    if (!since_)
      since_ = now;
  }
  /// Returns how long it had been silent.
  duration on_answer(time_point now) {
    auto result = length(now);
    since_.reset();
    return result;
  }
  /// The observer itself was paused.
  void start_afresh(time_point now) {
    if (since_)
      since_ = now;
  }
  duration length(time_point now) const {
    ensure(!since_ || now >= *since_, "time does not run backwards");
    return since_ ? now - *since_ : duration{};
  }

private:
  std::optional<time_point> since_; ///< The first request without an answer after it.
};

} // namespace ringmaster
