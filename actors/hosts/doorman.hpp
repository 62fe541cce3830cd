#pragma once

#include "actors/hosts/guarded_connection.hpp"

#include <caf/io/doorman.hpp>
#include <caf/io/network/default_multiplexer.hpp>

#include <chrono>
#include <cstddef>

namespace ringmaster {

/// What a peer that connects to CAF's port may cost before it has sent Ringmaster's greeting, and after.
struct doorman_limits {
  std::chrono::milliseconds greeting = std::chrono::seconds{5}; ///< Then the connection is closed.
  connection_limits connection = {};
  size_t strangers_max = 0; ///< Who have not greeted; one more takes the oldest one's place. 0: a quarter of the
                            ///< process's descriptors, 64 at least.
};

/// Accepts connections at a listening socket. CAF's own doorman accepts every peer, for any length of time, and
/// makes room for whatever length a message is said to have: 4 GiB for 32 bytes. On the thread of `backend`.
caf::io::doorman_ptr make_doorman(caf::io::network::default_multiplexer& backend, int listening,
                                  const doorman_limits& limits = {});

/// A connection that this process has made, which is guarded as those that the doorman takes.
caf::io::scribe_ptr make_connection(caf::io::network::default_multiplexer& backend, int connected);

/// Gives the socket a number that none has had lately.
int renumbered(int fd);

} // namespace ringmaster
