#pragma once

#include "tools/processes/child_process.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster::launch {

/// Turns the bytes of one stream, however they are cut, into whole lines that begin with "[NAME] ".
/// A line longer than `max_line_bytes` is cut into several, so that a stream without newlines needs bounded memory.
class line_prefixer {
public:
  static constexpr size_t max_line_bytes = 64 * 1024;

  explicit line_prefixer(std::string_view name);

  /// The lines that `bytes` completes, with prefix and newline. The rest is kept for the next call.
  std::string feed(std::string_view bytes);

  /// The incomplete last line, or empty.
  std::string flush();

  /// The last line that was not empty, without prefix.
  const std::string& last_line() const { return last_line_; }

private:
  void complete_line(std::string& lines);

  std::string prefix_;
  std::string begun_;
  std::string last_line_;
};

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

/// A child process with its name, output and exit status. Owned by a process_watch, which calls it when there is output
/// or a new state.
class watched_process {
public:
  /// Where output goes, line by line after the name. shown: to standard error. tagged: to the stream of the same kind.
  /// kept: standard output is kept for `kept_output`.
  enum class output_use { shown, tagged, kept };

  /// The maximum of standard output that is kept.
  static constexpr size_t max_kept_bytes = 256 * 1024;

  watched_process(std::string name, child_process child, output_use use);

  const std::string& name() const { return name_; }
  const std::optional<exit_status>& status() const { return status_; }
  bool running() const { return !status_; }
  /// Whether it is paused (SIGSTOP).
  bool is_paused() const { return running() && is_paused_; }

  /// Standard output so far, if kept.
  const std::string& kept_output() const { return kept_; }

  /// New lines from its pipe for notices (`child_spec::notices`).
  std::vector<std::string> take_notices();

  /// "exited with status 1: cannot open the journal": the exit status and the last line of its standard error, or else
  /// of its standard output. The line is omitted if a signal from outside ended it. Requires that it has exited.
  std::string describe_end() const;

  /// The last line that it wrote, or empty.
  const std::string& last_words() const;

  /// These do nothing once it has exited.
  void signal(int number);
  void stop();
  void nudge();

  // -- for the process_watch --
  child_process& child() { return child_; }
  void read_output();
  void on_exit(exit_status status);
  void on_stop(bool stopped) { is_paused_ = stopped; }

private:
  void read_stream(unique_fd& fd, line_prefixer& lines, int own_stream);
  void read_notices();
  void show(const std::string& lines, int own_stream) const;

  std::string name_;
  child_process child_;
  output_use use_;
  line_prefixer output_lines_;
  line_prefixer error_lines_;
  std::string kept_;
  std::string noticed_; ///< Lines for `take_notices`, and the start of another one.
  std::optional<exit_status> status_;
  bool is_paused_ = false;
};

/// Writes all of `text` to a standard stream, with a single system call where possible.
void write_to_stream(int stream, const std::string& text);
void write_to_standard_error(const std::string& text);

} // namespace ringmaster::launch
