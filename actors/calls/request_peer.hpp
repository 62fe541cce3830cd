#pragma once

#include <caf/actor_control_block.hpp>
#include <caf/node_id.hpp>

namespace ringmaster {

/// The unit for which requests are limited: another process as a whole, or one actor of this process.
struct request_peer {
  caf::node_id process;    ///< None: this one.
  caf::actor_id actor = 0; ///< 0: all actors of the other process.

  /// `here`: the process that receives the requests.
  static request_peer of(const caf::strong_actor_ptr& sender, const caf::node_id& here) {
    if (sender->node() == here)
      return {{}, sender->id()};
    return {sender->node(), 0};
  }
  bool is_here() const { return actor != 0; }

  friend bool operator==(const request_peer& x, const request_peer& y) {
    return x.actor == y.actor && x.process.compare(y.process) == 0;
  }
  friend bool operator<(const request_peer& x, const request_peer& y) {
    return x.actor != y.actor ? x.actor < y.actor : x.process.compare(y.process) < 0;
  }
};

} // namespace ringmaster
