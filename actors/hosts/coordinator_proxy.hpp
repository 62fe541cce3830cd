#pragma once

#include "messages/interfaces.hpp"
#include "runtime/text/endpoint.hpp"

#include <caf/actor_system.hpp>
#include <caf/expected.hpp>
#include <caf/timespan.hpp>

#include <functional>
#include <memory>
#include <vector>

namespace ringmaster {

struct found_coordinator {
  coordinator_actor handle;
  proto::ClusterIdentity identity;
  endpoint where; ///< Empty where `coordinator_way::look` has found it.
};

/// How a process finds its coordinator again.
struct coordinator_way {
  /// Tried in turn, until one answers as this cluster's coordinator. With several, one that is silent for a second is
  /// replaced as soon as another one serves the cluster.
  std::vector<endpoint> addresses;
  caf::timespan patience = std::chrono::seconds{
    60}; ///< After so long without it, it counts as gone (node.orphan-timeout).
  caf::timespan try_again = std::chrono::milliseconds{100};
  /// A number for each actor that calls (proto::CallId). Not set: a random one. For tests.
  std::function<uint64_t()> draw_caller;
  /// Gets a coordinator that has come back, or why there is none any longer.
  using found = std::function<void(const caf::expected<found_coordinator>&)>;
  /// Looks for it. Not set: over TCP, on a thread of its own. For tests.
  std::function<void(const proto::ClusterIdentity& expected, found then)> look;
  /// Gets a later coordinator, where the present one is silent and that one has taken its place.
  using successor = std::function<void(const found_coordinator&)>;
  /// Watches for silence. Not set: on a thread of its own, if there are several addresses. For tests.
  std::function<void(successor)> watch;
};

/// A handle for a coordinator of another process, to be used in its place by everything in this one. While that process
/// lives it only passes messages on. If it is killed and restarted, the proxy finds it again: nodes get a notice, so
/// that they come back with their devices, and requests that were not answered are sent again. What was sent meanwhile
/// waits. If it is not found within the way's patience, or ended in good order, or keeps nothing (ClusterIdentity), the
/// proxy ends, as the coordinator's handle would have.
///
/// Each actor that sends through it has a sender of its own on the coordinator's side, which ends with the actor: so a
/// client stays the owner of what it has made. Thread-safe.
coordinator_actor make_coordinator_proxy(caf::actor_system& system, const found_coordinator& coordinator,
                                         coordinator_way way);

/// Whether the coordinator is in another process.
bool is_elsewhere(const coordinator_actor& coordinator, const caf::actor_system& system);

/// The node gets a ClusterIdentity each time when the coordinator is back. No effect on a handle that is no proxy.
void notify_of_return(const coordinator_actor& coordinator, const node_actor& node);

/// Connects to the coordinator at an address and greets it. Blocks, for `limit` at most, or as long as a greeting
/// takes. `expected`: that of the cluster; null: any. Errors: those of connect_to, taken_as and greet.
caf::expected<found_coordinator> find_coordinator(caf::actor_system& system, const endpoint& where,
                                                  const proto::ClusterIdentity* expected, caf::timespan limit);

/// Greets what was found at an address. Blocks, for `limit` at most. Errors: those of its answer; timed_out;
/// unreachable, if it ends first, as one does that is about to be restarted.
caf::expected<proto::ClusterIdentity> greet(caf::actor_system& system, const coordinator_actor& coordinator,
                                            const proto::ClusterIdentity* expected, caf::timespan limit);

} // namespace ringmaster
