#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <thread>

namespace ringmaster {

/// Reports that the coordinator does not answer: on a terminal every second, in a line that is overwritten, elsewhere
/// once. Has a thread for that.
class silence_notice {
public:
  explicit silence_notice(std::FILE* out);

  /// The caller waits for an answer.
  void asked();
  void answered();

private:
  using clock = std::chrono::steady_clock;

  void look(std::stop_token ends);
  void report();

  std::FILE* out_;
  bool is_live_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<clock::time_point> asked_at_; ///< None: no answer is awaited.
  clock::time_point due_;                     ///< The time of the next report.
  bool reported_ = false;                     ///< This silence.
  std::jthread looks_;                        ///< The last member: it is destroyed first.
};

} // namespace ringmaster
