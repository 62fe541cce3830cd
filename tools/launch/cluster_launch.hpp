#pragma once

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

/// Runs one cluster: starts the coordinator, the nodes, the gateway if one is wanted, and the program, and stops all of
/// them. If the program's processes are ranks, they are also the nodes.
///
///   coordinator listens -> nodes started -> all joined -> gateway listens -> program runs -> all stop
///          \______________________\______________\_________________\______________/
///                        after a failure or a signal, all are stopped
///
/// Single use.
class cluster_launch {
public:
  /// The exit status if the cluster does not start.
  static constexpr int failed_status = 125;

  /// How long a process may take to exit after SIGTERM, before it is killed.
  static constexpr std::chrono::seconds grace{3};

  /// `line.binary` and the program must be paths. The coordinator writes its port into `scratch`. Either `nodes` or
  /// `ranks` is not empty.
  cluster_launch(command_line line, std::vector<node_place> nodes, std::vector<rank_place> ranks,
                 scratch_directory scratch, process_watch& watch);
  cluster_launch(const cluster_launch&) = delete; // its members refer to each other

  /// Returns the exit status of caf-run.
  int run();

private:
  using time_point = process_watch::clock::time_point;

  bool all_local() const { return remote_hosts_.empty(); }
  std::string own_address() const;
  std::string listens_at(const std::string& own) const;
  bool start_coordinator(const std::string& host);
  /// `port_file`: empty: none.
  watched_process* run_coordinator(const std::string& host, const std::string& port_file);
  /// One that has ended before its time is restarted on its store, while it may be.
  void restart_coordinator();
  bool may_restart_coordinator() const {
    return stop_signal_ == 0 && !stopping_ && restarts_ < line_.coordinator_restarts;
  }
  bool start_nodes();
  bool await_joined();
  bool start_gateway();
  void report_missing(const std::set<std::string>& missing);
  bool run_program();
  void report_failed_ranks();
  void report_early_ends();
  void await_ranks();
  void report_absent_ranks();
  void kill_paused();
  void check_paused_elsewhere();
  void report_lost();
  std::string goes_on_text() const;
  void stop_all();
  void stop(const std::vector<watched_process*>& processes);

  /// False if `done` is false at `deadline`, or a signal arrived before the program ran.
  bool wait_until(time_point deadline, const std::function<bool()>& done);
  void step(time_point deadline);
  void on_signal(process_watch::received_signal received);

  command_line line_;
  std::vector<node_place> places_;
  std::vector<rank_place> ranks_;
  std::vector<std::string> remote_hosts_;
  std::optional<scratch_directory> scratch_; ///< If the secret is not in it, until the coordinator listens: this
                                             ///< process may be killed later.
  process_watch& watch_;
  std::string address_;                    ///< HOST:PORT of the coordinator.
  std::string host_;                       ///< The first part.
  std::optional<scratch_directory> store_; ///< Of the coordinator, where the configuration names none.
  time_point join_deadline_;
  watched_process* coordinator_ = nullptr;
  uint32_t restarts_ = 0;               ///< Of the coordinator.
  std::vector<watched_process*> nodes_; ///< In the order of `places_`.
  watched_process* gateway_ = nullptr;  ///< Null: there is none, or it is the program.
  watched_process* info_ = nullptr;     ///< Waits for nodes to join, or for ranks on other hosts.
  program_processes program_;
  absence_notice absences_;
  node_losses losses_;
  bool coordinator_reported_ = false;
  time_point kill_paused_at_
    = time_point::max(); ///< Kills ranks that are paused (SIGSTOP) after the others have exited.
  time_point check_paused_at_ = time_point::max(); ///< The next check for paused ranks on other hosts.
  std::vector<pid_t> earlier_orphans_;             ///< Orphans that existed before the program ran.
  int stop_signal_ = 0;                            ///< The first signal received; 0: none.
  bool stopping_ = false;
  time_point kill_at_ = time_point::max(); ///< Set by the second signal.
};

} // namespace ringmaster::launch
