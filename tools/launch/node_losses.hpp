#pragma once

#include "tools/launch/command_line.hpp"
#include "tools/launch/hostfile.hpp"
#include "tools/processes/process_watch.hpp"

#include <map>
#include <string>
#include <vector>

namespace ringmaster::launch {

/// "node-2 on hostb", "node-2" here.
std::string place_text(const watched_process& node, const node_place& place);

/// Nodes that end while the program runs. Surviving that is what the program is there for: it is told of, and no more.
/// The coordinator knows what the node has taken with it; where it does not say so soon, the loss is told without.
class node_losses {
public:
  using time_point = process_watch::clock::time_point;

  node_losses(process_watch& watch, const command_line& line, const std::vector<node_place>& places)
    : watch_(watch), line_(line), places_(places) {}

  /// Says what there is to say. `coordinator`: its address; empty: it has ended. `how`: "the program goes on".
  void look(const std::vector<watched_process*>& nodes, const std::string& coordinator, const std::string& how);
  /// The program has ended, or all are being stopped: whatever is known by now is said.
  void finish(const std::vector<watched_process*>& nodes, const std::string& how);
  /// When to look again, at the latest.
  time_point due() const;

private:
  struct loss {
    watched_process* inquiry = nullptr; ///< What it took with it; null: that cannot be asked.
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
