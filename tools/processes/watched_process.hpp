#pragma once

#include "tools/processes/child_process.hpp"
#include "tools/processes/exit_status.hpp"
#include "tools/processes/line_prefixer.hpp"

#include <optional>
#include <string>
#include <vector>

namespace ringmaster::launch {

/// A child with a name, what it wrote, and how it ended. Owned by a process_watch, which tells it when to read and what
/// waitpid said.
class watched_process {
public:
  /// What becomes of the output, line by line after the name: all on our own standard error; each on our stream of the
  /// same kind. Or standard output is a text for us alone.
  enum class output_use { shown, tagged, kept };

  /// Most bytes of standard output that are kept.
  static constexpr size_t max_kept_bytes = 256 * 1024;

  watched_process(std::string name, child_process child, output_use use);

  const std::string& name() const { return name_; }
  const std::optional<exit_status>& status() const { return status_; }
  bool running() const { return !status_; }
  /// Somebody has stopped it (SIGSTOP), and nobody has let it go on.
  bool stands_still() const { return running() && stands_still_; }

  /// Standard output so far, if kept.
  const std::string& kept_output() const { return kept_; }

  /// Lines that it has written for us alone since the last call (`child_spec::notices`).
  std::vector<std::string> take_notices();

  /// "exited with status 1: cannot open the journal": how it ended and the last line on its standard error, or on its
  /// standard output where it said nothing there. Of one that somebody has killed the last line tells nothing, so it is
  /// left out. Only once it has ended.
  std::string describe_end() const;

  /// The last line that it wrote; empty if none.
  const std::string& last_words() const;

  /// These do nothing once it has ended.
  void signal(int number);
  void stop();
  void nudge();

  // -- for the process_watch --
  child_process& child() { return child_; }
  void read_output();
  void on_exit(exit_status status);
  void on_stop(bool stopped) { stands_still_ = stopped; }

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
  std::string noticed_; ///< Lines that nobody has taken, and the start of one more.
  std::optional<exit_status> status_;
  bool stands_still_ = false;
};

/// Writes all of `text` to one of our standard streams, in one write where the system lets us.
void write_to_stream(int stream, const std::string& text);
void write_to_standard_error(const std::string& text);

} // namespace ringmaster::launch
