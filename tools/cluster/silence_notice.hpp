#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <thread>

namespace ringmaster {

/// Says, while a thread waits for the coordinator's answer, that there is none: on a terminal every second, in a line
/// that is written over, elsewhere once a silence. It has a thread of its own for that.
class silence_notice {
public:
  explicit silence_notice(std::FILE* out);

  /// An answer is waited for from now on, or still.
  void asked();
  void answered();

private:
  using clock = std::chrono::steady_clock;

  void look(std::stop_token ends);
  void tell();

  std::FILE* out_;
  bool is_live_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<clock::time_point> asked_at_; ///< None: nobody waits.
  clock::time_point due_;                     ///< When to say so next.
  bool settings_ = false;                     ///< Of this silence.
  std::jthread looks_;                        ///< The last: it ends before the others.
};

} // namespace ringmaster
