#pragma once

#include <chrono>
#include <cstdint>

namespace ringmaster {

/// Turns the actors' steady clock into Unix time. The offset is taken once a process, so that the differences of
/// times are the steady clock's; under the test scheduler it is 0.
struct wall_clock {
  int64_t offset_ns = 0;

  static wall_clock of_this_process() {
    using namespace std::chrono;
    auto unix_time = system_clock::now().time_since_epoch();
    auto steady_time = steady_clock::now().time_since_epoch();
    return {duration_cast<nanoseconds>(unix_time - steady_time).count()};
  }

  uint64_t unix_ns(std::chrono::steady_clock::time_point at) const {
    using namespace std::chrono;
    return static_cast<uint64_t>(duration_cast<nanoseconds>(at.time_since_epoch()).count() + offset_ns);
  }
};

} // namespace ringmaster
