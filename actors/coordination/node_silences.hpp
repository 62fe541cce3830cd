#pragma once

#include "messages/ids.hpp"

#include <caf/error.hpp>

#include <cstdint>
#include <functional>
#include <map>

namespace ringmaster {

class coordinator_state;

/// Nodes that do not answer: how long each has been silent. A node's process may be stopped or busy, or the connection
/// may be down; none of these ends the node.
class node_silences {
public:
  explicit node_silences(coordinator_state& coordinator) : coordinator_(coordinator) {}

  /// Asks a node for a sign of life. `then` gets the length of its silence within a moment: 0 if it answers or has
  /// exited.
  void find(node_id id, std::function<void(uint64_t silent_ns)> then);
  /// Adds to an error with a node, within a moment, how long the node has been silent, if it is.
  void explain(node_id id, const caf::error& problem, std::function<void(const caf::error&)> then);
  /// The node counts as silent from `since_ns` (wall clock) on, until it answers.
  void note(node_id id, uint64_t since_ns);
  void node_gone(node_id id) { since_.erase(id); }

private:
  coordinator_state& coordinator_;
  std::map<node_id, uint64_t> since_; ///< Nodes that owe an answer, and since when: wall clock.
};

} // namespace ringmaster
