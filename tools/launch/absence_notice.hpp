#pragma once

#include "tools/launch/command_line.hpp"
#include "tools/processes/process_watch.hpp"

#include <string>
#include <vector>

namespace ringmaster::launch {

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

} // namespace ringmaster::launch
