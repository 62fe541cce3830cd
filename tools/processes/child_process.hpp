#pragma once

#include "tools/processes/unique_fd.hpp"

#include <caf/expected.hpp>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

namespace ringmaster::launch {

/// What to start, and how it is tied to us.
struct child_spec {
  enum class input_kind { inherited, none, pipe };
  enum class output_kind { inherited, pipes };

  std::vector<std::string> arguments; ///< The program first: a path, or a name to look up in PATH.
  std::vector<std::pair<std::string, std::string>> environment = {}; ///< Set beside what is inherited.
  std::vector<std::string> unset = {};                               ///< Not inherited.
  input_kind input = input_kind::none;
  output_kind output = output_kind::pipes;
  bool own_group = true;     ///< A process group of its own, which signals go to as a whole.
  sigset_t signal_mask = {}; ///< Blocked in the child; by default nothing is.
  bool notices = false; ///< A pipe for what the child says to our program alone; RINGMASTER_NOTICES_FD has its number.
};

/// A started process and our ends of its pipes. It dies with us (SIGKILL), however we end. Whoever owns this object
/// reaps the process, and calls `signal` and `stop` only before that. Destroying the object closes the
/// pipes and leaves the process alone.
class child_process {
public:
  /// Errors: errc::io_error with the reason of the system, also where the program cannot be executed.
  static caf::expected<child_process> start(const child_spec& spec);

  pid_t pid() const { return pid_; }

  /// Our ends, non-blocking; none where the stream is inherited, or there is no such pipe.
  unique_fd& standard_output() { return output_; }
  unique_fd& standard_error() { return error_; }
  unique_fd& notices() { return notices_; }

  /// Sends a signal to the process, or to its whole group where it has one of its own.
  void signal(int number) const;

  /// Asks the process to end: ends its standard input where that is our pipe, else sends SIGTERM.
  void stop();

  /// An empty line for its standard input, where that is our pipe and there is room.
  void nudge() const;

private:
  pid_t pid_ = -1;
  bool own_group_ = false;
  unique_fd input_;
  unique_fd output_;
  unique_fd error_;
  unique_fd notices_;
};

} // namespace ringmaster::launch
