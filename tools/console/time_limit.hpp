#pragma once

#include <chrono>
#include <string>

namespace ringmaster {

/// While it lives, a limit of what may never end, such as a reader's own program: at the end of it the process prints
/// the sentence to stderr and exits with 1. One at a time, and SIGALRM is its own.
class time_limit {
public:
  time_limit(std::chrono::milliseconds limit, std::string sentence);
  ~time_limit();
  time_limit(const time_limit&) = delete;
  time_limit& operator=(const time_limit&) = delete;
};

} // namespace ringmaster
