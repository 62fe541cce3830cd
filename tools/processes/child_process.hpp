#pragma once

#include <caf/expected.hpp>

#include <csignal>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace ringmaster::launch {

/// Owns a file descriptor; -1 is none.
class unique_fd {
public:
  unique_fd() = default;
  explicit unique_fd(int fd) : fd_(fd) {}
  unique_fd(unique_fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  unique_fd& operator=(unique_fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~unique_fd() { close(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

  void close() {
    if (fd_ >= 0)
      ::close(fd_); // not again on EINTR: Linux has closed it by then
    fd_ = -1;
  }

private:
  int fd_ = -1;
};

/// A program to start, and its streams.
struct child_spec {
  enum class input_kind { inherited, none, pipe };
  enum class output_kind { inherited, pipes };

  std::vector<std::string> arguments; ///< The program first: a path, or a name to look up in PATH.
  std::vector<std::pair<std::string, std::string>> environment = {}; ///< Set in addition to the inherited environment.
  std::vector<std::string> unset = {};                               ///< Not inherited.
  input_kind input = input_kind::none;
  std::string first_line = {}; ///< Written to its standard input, if that is a pipe: some KiB at most. Empty: nothing.
  output_kind output = output_kind::pipes;
  bool own_group = true;     ///< A process group of its own, to which signals are sent.
  sigset_t signal_mask = {}; ///< Blocked in the child; by default none.
  bool notices = false;      ///< A pipe for messages to this program; RINGMASTER_NOTICES_FD has its number.
};

/// A started process and this process's ends of its pipes. It is killed (SIGKILL) when this process exits. The owner
/// reaps it, and calls `signal` and `stop` only before that. Destroying the object closes the pipes only.
class child_process {
public:
  /// Errors: io_error with the system's reason, also if the program cannot be executed.
  static caf::expected<child_process> start(const child_spec& spec);

  pid_t pid() const { return pid_; }

  /// Non-blocking; none if the stream is inherited or there is no such pipe.
  unique_fd& standard_output() { return output_; }
  unique_fd& standard_error() { return error_; }
  unique_fd& notices() { return notices_; }

  /// Sends a signal to the process, or to its own process group.
  void signal(int number) const;

  /// Asks the process to stop: closes its standard input if that is a pipe, else sends SIGTERM.
  void stop();

  /// Writes an empty line to its standard input, if that is a pipe with space.
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
