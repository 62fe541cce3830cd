#pragma once

#include "tools/launch/command_line.hpp"
#include "tools/processes/process_watch.hpp"

#include <string>
#include <vector>

namespace ringmaster::launch {

/// Tells the coordinator of ranks whose processes have ended: others may wait for one that has not joined. Most end
/// together, when all is done, and then there is nobody to tell; so each is told a moment after its end, with those
/// that have ended since, by `ringmaster absent`.
class absence_notice {
public:
  using time_point = process_watch::clock::time_point;

  absence_notice(process_watch& watch, const command_line& line) : watch_(watch), line_(line) {}

  /// As `program_processes::ended` has them.
  void add(std::vector<std::string> ranks);
  /// Starts what is due, and says if it has failed.
  void look(const std::string& coordinator);
  /// When to look again, at the latest.
  time_point due() const { return due_; }
  /// Nobody is told any more.
  void stop();

private:
  void look_how_it_ended();

  process_watch& watch_;
  const command_line& line_;
  std::vector<std::string> waiting_, under_way_;
  time_point due_ = time_point::max();
  watched_process* telling_ = nullptr;
};

} // namespace ringmaster::launch
