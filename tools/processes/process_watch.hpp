#pragma once

#include "actors/scheduling/awake_clock.hpp"
#include "tools/processes/watched_process.hpp"

#include <chrono>
#include <memory>
#include <vector>

namespace ringmaster::launch {

/// All children of this process and the signals that reach it, in one place to wait at. There is one in a program, made
/// before anything else: it blocks the signals, and adopts what its children leave behind. When it is destroyed nothing
/// of what it started runs on, in whatever process group or session.
class process_watch {
public:
  using clock = awake_clock;

  /// A signal that somebody sent us. From the terminal it has reached all of the foreground process group already.
  struct received_signal {
    int number;
    bool from_terminal;
  };

  static caf::expected<std::unique_ptr<process_watch>> make();
  ~process_watch();

  /// Starts a process; it is valid as long as the watch. `spec.signal_mask` is set to what was blocked before us.
  caf::expected<watched_process*> start(std::string name, child_spec spec, watched_process::output_use use);

  /// Waits until something happens, or for a moment, at most until `deadline`: output is passed on, ended children get
  /// their status, and stopped ones are known. Returns the signals that came, oldest first.
  std::vector<received_signal> step(clock::time_point deadline);

  /// What children have left behind when they ended, or when they became daemons.
  std::vector<pid_t> strays() const;
  /// Kills all of those but these, and waits until they are gone, for 2 s at most.
  void end_strays(const std::vector<pid_t>& but);

  /// Stops all processes and this one; when this one is continued, it continues all.
  void suspend();

private:
  process_watch() = default;

  std::vector<received_signal> read_signals();
  void reap();
  void kill_the_rest();

  awake_clock::ticking ticks_; ///< So that limits exclude the periods in which this process was paused.
  sigset_t mask_before_ = {};
  unique_fd signals_;
  std::vector<std::unique_ptr<watched_process>> processes_;
};

} // namespace ringmaster::launch
