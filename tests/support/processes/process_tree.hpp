#pragma once

#include <csignal>
#include <fstream>
#include <string>
#include <sys/types.h>
#include <vector>

namespace ringmaster::launch {

/// A process and all that it has started, and so on.
inline std::vector<pid_t> processes_of(pid_t first) {
  std::vector<pid_t> result{first};
  for (size_t i = 0; i < result.size(); ++i) {
    const auto of = std::to_string(result[i]);
    std::ifstream children("/proc/" + of + "/task/" + of + "/children");
    for (pid_t pid = 0; children >> pid;)
      result.push_back(pid);
  }
  return result;
}

/// As a launcher does that suspends a job.
inline void signal_all(const std::vector<pid_t>& processes, int number) {
  for (auto pid : processes)
    ::kill(pid, number);
}

} // namespace ringmaster::launch
