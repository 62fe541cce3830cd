#pragma once

#include "actors/scheduling/awake_clock.hpp"
#include "tools/processes/watched_process.hpp"

#include <chrono>
#include <memory>
#include <vector>

namespace ringmaster::launch {

/// Waits for all children of this process and for its signals. A program has one, made before anything else: it blocks
/// the signals and adopts orphans of its children. When it is destroyed, all processes that it started are killed, in
/// any process group or session.
class process_watch {
public:
  using clock = awake_clock;

  /// A received signal. One from the terminal has reached all of the foreground process group already.
  struct received_signal {
    int number;
    bool from_terminal;
  };

  static caf::expected<std::unique_ptr<process_watch>> make();
  ~process_watch();

  /// Starts a process; the result is valid as long as this object. Sets `spec.signal_mask` to the original mask.
  caf::expected<watched_process*> start(std::string name, child_spec spec, watched_process::output_use use);

  /// Waits for an event, a moment, or at most until `deadline`: passes output on, and updates the state of children.
  /// Returns the received signals, oldest first.
  std::vector<received_signal> step(clock::time_point deadline);

  /// Orphans and daemons of the children.
  std::vector<pid_t> orphans() const;
  /// Kills all of them but these, and waits until they have exited, for 2 s at most.
  void end_orphans(const std::vector<pid_t>& but);

  /// Stops all processes and this one; when this one is continued, it continues all.
  void suspend();

private:
  process_watch() = default;

  std::vector<received_signal> read_signals();
  void reap();
  void kill_the_rest();

  awake_clock::ticking ticks_; ///< Limits exclude the periods in which this process was paused.
  sigset_t mask_before_ = {};
  unique_fd signals_;
  std::vector<std::unique_ptr<watched_process>> processes_;
};

} // namespace ringmaster::launch
