#pragma once

#include <chrono>
#include <cstdint>

namespace ringmaster {

/// For what anybody outside can cause as often as he likes: it is told once in a while, with how often it was. Not
/// thread-safe.
class rate_limiter {
public:
  using time_point = std::chrono::steady_clock::time_point;

  explicit rate_limiter(std::chrono::seconds between) : between_(between) {}

  /// It has happened. Returns how often since it was told last, if it is to be told now; else 0.
  uint64_t happened(time_point now) {
    ++untold_;
    if (settings_ && now < last_ + between_)
      return 0;
    settings_ = true;
    last_ = now;
    auto result = untold_;
    untold_ = 0;
    return result;
  }

private:
  std::chrono::seconds between_;
  uint64_t untold_ = 0;
  bool settings_ = false;
  time_point last_;
};

} // namespace ringmaster
