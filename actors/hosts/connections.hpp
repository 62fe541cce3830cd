#pragma once

#include "actors/links/sockets.hpp"
#include "runtime/text/endpoint.hpp"

#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/actor_system.hpp>
#include <caf/expected.hpp>
#include <caf/timespan.hpp>

#include <chrono>
#include <set>
#include <string>

namespace ringmaster {

// How processes find each other over CAF's protocol, in place of `middleman().publish` and `remote_actor`, for two
// faults of CAF 0.17's own way:
//   Its connecting has no limit, and all connections that a process wants wait for one that is under way.
//   It knows a connection by the number of its socket, and forgets one that was closed only when all messages before it
//   are taken apart. If a new connection has got the number meanwhile, that one is forgotten: its peer, which is
//   still there, is reported as gone, and requests over it are never answered. Here numbers rise, and come again
//   only after hundreds of others.
// Processes that connect are limited: see doorman.hpp.

/// What answers at an endpoint.
struct published_actor {
  caf::strong_actor_ptr handle; ///< Null: nothing is published there.
  std::set<std::string> signature;
  uint32_t protocol = 0; ///< That its process speaks; 0: it does not say.
};

/// Whether what answers at `where` is, as `is_one` says, what is meant: "coordinator". Errors: invalid_argument;
/// wrong_version, with both protocols.
caf::error check(const published_actor& found, const std::string& where, const char* what, bool is_one);

/// It as an actor of that interface. Errors: as above.
template <class Handle>
caf::expected<Handle> taken_as(const published_actor& found, const caf::actor_system& system, const std::string& where,
                               const char* what) {
  if (auto problem = check(found, where, what, found.handle && system.assignable<Handle>(found.signature)))
    return problem;
  return caf::actor_cast<Handle>(found.handle);
}

/// How long the other host's system may leave bytes of a connection between two nodes unacknowledged before the way
/// there counts as lost (RFC 5482, user timeout). A stopped process does not matter: its kernel answers for
/// it.
constexpr std::chrono::seconds way_limit{3};

/// Connects, and waits `limit` at most; blocks. `whom`: what is to listen there, for the advice in errors. `way`: how
/// long bytes may be unacknowledged; 0: the system's default. Errors: invalid_argument, for an unknown host name;
/// unreachable, with both ends and what to look at, after 3 s at most; timed_out, if a process listens and does not
/// answer, or a name server does not; aborted, where this process wants no more connections (`no_more_connecting`);
/// those of greeting_initiator: unauthenticated, where the two ends have not the same secret.
caf::expected<published_actor> connect_to(caf::actor_system& system, const endpoint& there, caf::timespan limit,
                                          listener_kind whom = listener_kind::coordinator,
                                          std::chrono::milliseconds way = {});

/// Answers a caf::node_id with a uint64_t: for how many nanoseconds nothing has come over the connection with that
/// process, heartbeats included; 0 where none is overdue, or if there is no connection. The actor that spawns it stops
/// it. Invalid where the system has no connections at all.
caf::actor make_silence_watch(caf::actor_system& system);

/// Lets this process have as many descriptors as the system allows it: by default 1,024 of some 100,000, and each other
/// process takes some.
void raise_descriptor_limit();

/// Lets others connect to `whom`, and know our protocol, at `host` (empty: any address) and `port` (0: any that is
/// free). `way`: as above. Returns the port. Errors: invalid_argument, where the host is unknown or no address of this
/// one; io_error; those of process_trust. Both ends of a connection prove the cluster's secret first (greeting_desk);
/// `greeting`: one that was admitted, and has not greeted by CAF's protocol by then, is closed. `as`: what this process
/// is to those that connect.
caf::expected<uint16_t> listen_for(caf::actor_system& system, const caf::strong_actor_ptr& whom,
                                   std::set<std::string> signature, const std::string& host, uint16_t port,
                                   listener_kind as = listener_kind::coordinator, std::chrono::milliseconds way = {},
                                   std::chrono::milliseconds greeting = std::chrono::seconds{5});

template <class Handle>
caf::expected<uint16_t> listen_for(const Handle& whom, caf::actor_system& system, const std::string& host,
                                   uint16_t port, listener_kind as = listener_kind::coordinator,
                                   std::chrono::milliseconds way = {},
                                   std::chrono::milliseconds greeting = std::chrono::seconds{5}) {
  return listen_for(system, caf::actor_cast<caf::strong_actor_ptr>(whom), system.message_types(whom), host, port, as,
                    way, greeting);
}

} // namespace ringmaster
