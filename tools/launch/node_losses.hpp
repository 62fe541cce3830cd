#pragma once

#include "tools/launch/command_line.hpp"
#include "tools/launch/hostfile.hpp"
#include "tools/processes/process_watch.hpp"

#include <map>
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

} // namespace ringmaster::launch
