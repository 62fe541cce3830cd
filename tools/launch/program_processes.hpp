#pragma once

#include "tools/launch/command_line.hpp"
#include "tools/launch/hostfile.hpp"
#include "tools/processes/process_watch.hpp"

#include <optional>
#include <string>
#include <vector>

namespace ringmaster::launch {

/// The program as it runs: one process that is a client of the cluster, or one for each rank.
class program_processes {
public:
  /// `ranks`: where they are; none: it is a client. Each is told of the coordinator at `address`. Errors: those of
  /// child_process; some may run by then.
  /// `nodes_return`: a node that is lost may join again.
  caf::error start(process_watch& watch, const command_line& line, const std::vector<rank_place>& ranks,
                   const std::string& address, bool nodes_return);

  bool started() const { return !processes_.empty(); }
  bool running() const { return running_count() > 0; }

  /// To all that run. A process on another host can only be told to end.
  void signal(int number);
  /// SIGKILL.
  void kill();

  /// Those that would never end, where all the others have, and nobody waits for them any more: somebody has stopped
  /// them, or they were never heard of and others have failed. None: there are others that run, or no others.
  std::vector<watched_process*> left_standing() const;
  /// Whether only ranks on other hosts go on, as far as can be told from here, and others have ended: then somebody may
  /// have stopped them.
  bool waits_for_remote() const;
  /// Has the other hosts look whether they are, see `remote_rank_command`. To be called every second.
  void look_for_stopped();
  /// Ranks on other hosts that run, as far as can be told from here.
  std::vector<uint32_t> running_by_ssh() const;
  /// This rank was not heard of in time: its ssh may hang.
  void not_heard_of(uint32_t rank) { processes_[rank].heard_of = false; }

  /// Of those that have ended and failed since the last time: "rank 1 exited with status 3; 2 others go on". To be
  /// asked whenever one may have, as `status` goes by it.
  std::vector<std::string> failures();

  /// What the coordinator has noticed: "lost 3" of a rank that others still had in their group, "finalized 3" of one
  /// that has left it as it should.
  void notice(const std::vector<std::string>& lines);

  /// Of those that have ended with status 0 since the last time, lost to others and not finalized: "rank 3 exited with
  /// status 0 without finalize, while others were at work; 2 others go on". They count as failed, with status 1.
  std::vector<std::string> early_ends();

  /// Ranks that have ended since the last time: "1:its process exited with status 3".
  std::vector<std::string> ended();

  /// Of the first that failed, as a shell has it; 0 if all did well. None: some have not ended.
  std::optional<int> status() const;

private:
  struct process {
    watched_process* what;
    bool by_ssh;
    std::string place = {}; ///< "rank 3 on hostb"
    bool looked_at = false; ///< Its end has been.
    bool told = false;      ///< The same, by `ended`.
    bool heard_of = true;   ///< Or it is not known yet.
    bool was_lost = false;  ///< By its group, before the others had left.
    bool finalized = false;
  };

  size_t running_count() const;
  /// "; 2 others go on"; empty: none does.
  std::string others_text() const;

  std::vector<process> processes_; ///< By rank.
  int first_failure_ = 0;
};

} // namespace ringmaster::launch
