#pragma once

#include "tools/launch/command_line.hpp"
#include "tools/launch/hostfile.hpp"
#include "tools/processes/process_watch.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ringmaster::launch {

/// "node-2 on hostb", or "node-2" on this host.
std::string place_text(const watched_process& node, const node_place& place);

/// Reports nodes that exit while the program runs, which goes on. The coordinator is asked what was lost with the node;
/// without a timely answer the report omits it.
class node_losses {
public:
  using time_point = process_watch::clock::time_point;

  node_losses(process_watch& watch, const command_line& line, const std::vector<node_place>& places)
    : watch_(watch), line_(line), places_(places) {}

  /// Prints due reports. `coordinator`: its address; empty: it has exited. `how`: "the program goes on".
  void look(const std::vector<watched_process*>& nodes, const std::string& coordinator, const std::string& how);
  /// Prints all reports with what is known now.
  void finish(const std::vector<watched_process*>& nodes, const std::string& how);
  /// When to call `look` again, at the latest.
  time_point due() const;

private:
  struct loss {
    watched_process* inquiry = nullptr; ///< Asks what was lost with it; null: it cannot be asked.
    time_point report_at;               ///< At the latest.
    bool reported = false;
  };

  void report(size_t node, const watched_process& process, const std::string& how);

  process_watch& watch_;
  const command_line& line_;
  const std::vector<node_place>& places_;
  std::map<size_t, loss> losses_; ///< By the node's place.
};

// Reads the JSON of `ringmaster info`. Output that is not JSON or lacks a field counts as no answer.

/// The missing nodes, from a failed `info --nodes A,B`.
std::set<std::string> missing_nodes_in(const std::string& output);

struct reported_loss {
  std::string text; ///< "devices 0x3 0x4 of communicator 1 (epoch 2 on 6 ranks)"
  bool has_ranks = false;
};
/// The answer of `info --gone A`.
std::optional<reported_loss> loss_in(const std::string& output);

/// Reports ranks whose processes have exited to the coordinator, since other ranks may wait for one that has not
/// joined. Most exit together at the end, when the coordinator no longer runs. So a report is delayed a moment,
/// collects the ranks that exit meanwhile, and is sent by `ringmaster absent`.
class absence_notice {
public:
  using time_point = process_watch::clock::time_point;

  absence_notice(process_watch& watch, const command_line& line) : watch_(watch), line_(line) {}

  /// `ranks`: from `program_processes::ended`.
  void add(std::vector<std::string> ranks);
  /// Sends a report that is due, and logs one that has failed.
  void look(const std::string& coordinator);
  /// When to call `look` again, at the latest.
  time_point due() const { return due_; }
  /// Sends no further reports.
  void stop();

private:
  void check_report();

  process_watch& watch_;
  const command_line& line_;
  std::vector<std::string> waiting_, in_report_;
  time_point due_ = time_point::max();
  watched_process* report_ = nullptr;
};

/// Prints a line "caf-run: TEXT" to standard error.
void say(const std::string& text);

/// "0.5 s"
std::string in_seconds(std::chrono::milliseconds duration);

/// Whether the process exists and has exited.
bool ended(const watched_process* process);

/// Null if the process cannot be started, which is then reported.
watched_process* start_or_say(process_watch& watch, const std::string& name, child_spec spec,
                              watched_process::output_use use = watched_process::output_use::shown);

} // namespace ringmaster::launch
