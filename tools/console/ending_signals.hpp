#pragma once

#include <chrono>
#include <string>

namespace ringmaster {

/// Lets `ending_signal` receive the signals that stop a program, including SIGPIPE. They are blocked, so that no wait
/// is interrupted; call this before starting threads. They are also caught, since libraries start threads that block
/// nothing.
void block_ending_signals();
/// The received signal, or 0.
int ending_signal();

/// A time limit for code that may never return, such as a user's program: after it the process prints the sentence to
/// stderr and exits with 1. There may be only one at a time. Uses SIGALRM.
class time_limit {
public:
  time_limit(std::chrono::milliseconds limit, std::string sentence);
  ~time_limit();
  time_limit(const time_limit&) = delete;
  time_limit& operator=(const time_limit&) = delete;
};

} // namespace ringmaster
