#pragma once

#include "actors/scheduling/awake_clock.hpp"

#include <chrono>
#include <cstdint>

namespace ringmaster {

/// Turns times of the actors' clock into Unix time. The offset is taken once a process, so that setting the system
/// clock changes nothing and differences of times are the steady clock's; under the test scheduler it is 0. The actors'
/// clock excludes pauses of the process (`awake_clock`), Unix time does not: a time from before a pause comes out too
/// late.
struct wall_clock {
  int64_t offset_ns = 0;
  bool adds_pauses = false; ///< Of this process; not under the test scheduler.

  static wall_clock of_this_process() {
    using namespace std::chrono;
    auto unix_time = system_clock::now().time_since_epoch();
    auto steady_time = steady_clock::now().time_since_epoch();
    return {duration_cast<nanoseconds>(unix_time - steady_time).count(), true};
  }

  uint64_t unix_ns(std::chrono::steady_clock::time_point at) const {
    using namespace std::chrono;
    const auto paused_ns = adds_pauses ? awake_clock::paused().count() : 0;
    return static_cast<uint64_t>(duration_cast<nanoseconds>(at.time_since_epoch()).count() + offset_ns + paused_ns);
  }
  uint64_t unix_ns(awake_clock::time_point at) const {
    return unix_ns(std::chrono::steady_clock::time_point{at.time_since_epoch()});
  }
};

} // namespace ringmaster
