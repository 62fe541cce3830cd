#pragma once

#include "tools/launch/command_line.hpp"
#include "tools/launch/hostfile.hpp"
#include "tools/processes/process_watch.hpp"

#include <caf/expected.hpp>

#include <optional>
#include <string>
#include <vector>

namespace ringmaster::launch {

/// The processes of the program: a single client of the cluster, or one for each rank.
class program_processes {
public:
  /// `ranks`: their places; none: the program is a client. `address`: of the coordinator, for the environment.
  /// `nodes_return`: a lost node may join again. Errors: as of child_process; some processes may run already.
  caf::error start(process_watch& watch, const command_line& line, const std::vector<rank_place>& ranks,
                   const std::string& address, bool nodes_return);

  bool started() const { return !processes_.empty(); }
  bool running() const { return running_count() > 0; }

  /// Signals all running processes. Those on other hosts can only be asked to stop.
  void signal(int number);
  /// SIGKILL.
  void kill();

  /// Processes that would never exit although all others have: they are paused (SIGSTOP), or never joined and others
  /// have failed. Empty while others run, and if there are no others.
  std::vector<watched_process*> never_exiting() const;
  /// Whether only ranks on other hosts seem to run and others have exited: the former may be paused.
  bool waits_for_remote() const;
  /// Checks on the other hosts whether they are paused, see `remote_rank_command`. Must be called every second.
  void check_for_paused();
  /// Ranks whose ssh runs.
  std::vector<uint32_t> running_by_ssh() const;
  /// The rank has not joined in time: its ssh may hang.
  void set_not_joined(uint32_t rank) { processes_[rank].joined = false; }

  /// New failures since the last call: "rank 1 exited with status 3; 2 others go on". `status` depends on it, so it
  /// must be called after each exit.
  std::vector<std::string> failures();

  /// Takes the coordinator's notices: "lost 3" for a rank that was still in its group, "finalized 3" for one that left
  /// it.
  void notice(const std::vector<std::string>& lines);

  /// New exits with status 0 since the last call of ranks that were lost and not finalized: "rank 3 exited with status
  /// 0 without finalize, while others were at work; 2 others go on". They count as failures with status 1.
  std::vector<std::string> early_ends();

  /// Ranks that have exited since the last call: "1:its process exited with status 3".
  std::vector<std::string> ended();

  /// The shell's status of the first failure, or 0; none while processes run.
  std::optional<int> status() const;

private:
  struct process {
    watched_process* what;
    bool by_ssh;
    std::string place = {}; ///< "rank 3 on hostb"
    bool looked_at = false; ///< Its exit was taken by `failures`.
    bool reported = false;  ///< Its exit was taken by `ended`.
    bool joined = true;     ///< Or that is not known yet.
    bool was_lost = false;  ///< It left its group before the others.
    bool finalized = false;
  };

  size_t running_count() const;
  /// "; 2 others go on", or empty.
  std::string others_text() const;

  std::vector<process> processes_; ///< By rank.
  int first_failure_ = 0;
};

/// The path of the program `name`: unchanged if it has a slash, else the first executable file of that name in the
/// directories of `search_path` (separated by colons) and in `last_directory`. Errors: invalid_argument for an unknown
/// program, io_error for one that is not executable.
caf::expected<std::string> find_program(const std::string& name, const std::string& search_path,
                                        const std::string& last_directory);

} // namespace ringmaster::launch
