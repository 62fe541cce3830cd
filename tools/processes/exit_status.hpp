#pragma once

#include <string>

namespace ringmaster::launch {

/// How a process ended, from the integer that waitpid(2) gives.
class exit_status {
public:
  explicit exit_status(int raw) : raw_(raw) {}

  bool success() const { return raw_ == 0; }

  /// The shell's status: that of the process, or 128 + n if signal n ended it.
  int shell_status() const;

  /// "exited with status 3", or "was ended by signal 9 (Killed)".
  std::string describe() const;

  /// Ended by a signal that a user or another process sends, not by a crash.
  bool ended_from_outside() const;

private:
  int raw_;
};

} // namespace ringmaster::launch
