#pragma once

#include "tools/launch/absence_notice.hpp"
#include "tools/launch/command_line.hpp"
#include "tools/launch/hostfile.hpp"
#include "tools/launch/node_losses.hpp"
#include "tools/launch/program_processes.hpp"
#include "tools/launch/scratch_directory.hpp"
#include "tools/processes/process_watch.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster::launch {

/// One cluster from start to end: coordinator, nodes, the program, and the stopping of all three. Where the program's
/// processes are ranks, they are the nodes as well.
///
///   coordinator listens -> nodes started -> all joined -> program runs -> nodes stop -> coordinator stops
///          \______________________\______________\____________________________/
///                        a failure or a signal leads straight to the stopping
///
/// Single use.
class cluster_launch {
public:
  /// The exit status when the cluster does not come up.
  static constexpr int failed_status = 125;

  /// How long a process may take to end when asked to, before it is killed.
  static constexpr std::chrono::seconds grace{3};

  /// `line.binary` and the program are paths by now; in `scratch` the coordinator says which port it got.
  /// There are nodes, or ranks, which are nodes themselves.
  cluster_launch(command_line line, std::vector<node_place> nodes, std::vector<rank_place> ranks,
                 scratch_directory scratch, process_watch& watch);
  cluster_launch(const cluster_launch&) = delete; // its parts refer to others of them

  /// Does all of it and returns the exit status for our own caller.
  int run();

private:
  using time_point = process_watch::clock::time_point;

  bool all_local() const { return remote_hosts_.empty(); }
  std::string own_address() const;
  std::string listens_at(const std::string& own) const;
  bool start_coordinator(const std::string& host);
  bool start_nodes();
  bool await_joined();
  void report_missing(const std::set<std::string>& missing);
  bool run_program();
  void report_failed_ranks();
  void report_early_ends();
  void await_ranks();
  void report_absent_ranks();
  void end_left_standing();
  void end_stopped_elsewhere();
  void look_for_lost();
  std::string how_it_goes() const;
  void stop_all();
  void stop(const std::vector<watched_process*>& processes);

  /// False if `done` is still false at `deadline`, or a signal asked for the end before the program ran.
  bool wait_until(time_point deadline, const std::function<bool()>& done);
  void step(time_point deadline);
  void on_signal(process_watch::received_signal received);

  command_line line_;
  std::vector<node_place> places_;
  std::vector<rank_place> ranks_;
  std::vector<std::string> remote_hosts_;
  std::optional<scratch_directory> scratch_; ///< Only until the coordinator listens: we may be killed later.
  process_watch& watch_;
  std::string address_; ///< HOST:PORT of the coordinator.
  time_point join_deadline_;
  watched_process* coordinator_ = nullptr;
  std::vector<watched_process*> nodes_; ///< The i-th belongs to the i-th place.
  watched_process* info_ = nullptr;     ///< Waits for nodes to join, or for ranks on other hosts.
  program_processes program_;
  absence_notice absences_;
  node_losses losses_;
  bool coordinator_reported_ = false;
  time_point end_standing_at_ = time_point::max(); ///< Ranks that are stopped, when the others have ended.
  time_point look_at_ = time_point::max();         ///< For ranks that are stopped on other hosts: the next time.
  std::vector<pid_t> not_the_programs_;            ///< Processes that were left behind before it ran.
  int stop_signal_ = 0;                            ///< The first that came; 0: none.
  bool stopping_ = false;
  time_point kill_at_ = time_point::max(); ///< Set by the second: when patience ends.
};

} // namespace ringmaster::launch
