#pragma once

#include <string>

namespace ringmaster::launch {

/// How a process ended, from the integer that waitpid(2) gives.
class exit_status {
public:
  explicit exit_status(int raw) : raw_(raw) {}

  bool success() const { return raw_ == 0; }

  /// As a shell has it: the status, or 128 + n where signal n ended the process.
  int shell_status() const;

  /// "exited with status 3", or "was ended by signal 9 (Killed)".
  std::string describe() const;

  /// Ended by a signal with which somebody ends a process, not by a fault of its own.
  bool by_somebody() const;

private:
  int raw_;
};

} // namespace ringmaster::launch
