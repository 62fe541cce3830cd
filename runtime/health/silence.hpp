#pragma once

#include <chrono>
#include <optional>

namespace ringmaster {

/// How long a process that is asked again and again has said nothing. Pure: the caller passes the time in.
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
  /// Whoever asks stood still himself.
  void start_afresh(time_point now) {
    if (since_)
      since_ = now;
  }
  duration length(time_point now) const { return since_ ? now - *since_ : duration{}; }

private:
  std::optional<time_point> since_; ///< The first request that nothing was heard after.
};

} // namespace ringmaster
