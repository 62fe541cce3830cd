#pragma once

#include "actors/hosts/connections.hpp"
#include "messages/interfaces.hpp"
#include "runtime/text/endpoint.hpp"

#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>
#include <future>

#include <chrono>
#include <future>
#include <vector>

namespace ringmaster {

/// Connects to the nodes that the coordinator's configuration lists, asks each to join with the ids from there, and
/// tries again while it is missing or lost.
class adoption {
public:
  adoption(caf::actor_system& system, caf::scoped_actor& self, coordinator_actor coordinator,
           const std::vector<cluster_device>& devices);

  /// Tries to connect to missing nodes, once a second. Never blocks.
  void try_missing();
  void on_down(const caf::down_msg& x);

private:
  struct listed_node {
    endpoint where;
    std::vector<uint64_t> device_ids = {};
    caf::actor_addr present = {};
    bool reported = false;                                  ///< That it is missing.
    std::future<caf::expected<published_actor>> found = {}; ///< The current attempt.
  };

  void adopt(listed_node& x);
  void missed(listed_node& x, const caf::error& why);

  caf::actor_system& system_;
  caf::scoped_actor& self_;
  coordinator_actor coordinator_;
  std::vector<listed_node> nodes_;
  std::chrono::steady_clock::time_point next_try_;
};

} // namespace ringmaster
