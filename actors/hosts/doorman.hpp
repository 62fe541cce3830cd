#pragma once

#include "actors/hosts/guarded_connection.hpp"
#include "actors/links/greeting_desk.hpp"

#include <caf/io/doorman.hpp>
#include <caf/io/network/default_multiplexer.hpp>

#include <chrono>
#include <cstddef>
#include <memory>

namespace ringmaster {

/// What a peer that connects to CAF's port, and was admitted, may cost before it has greeted by CAF's protocol, and
/// after.
struct doorman_limits {
  std::chrono::milliseconds greeting = std::chrono::seconds{5}; ///< Then the connection is closed.
  connection_limits connection = {};
  size_t strangers_max = 0; ///< Who have not greeted; one more takes the oldest one's place. 0: a quarter of the
                            ///< process's descriptors, 64 at least.
};

/// Accepts connections at a listening socket. What connects is admitted by `desk` before anything else sees a byte of
/// it, and before it counts in `limits`; without a desk, everything is admitted. CAF's own doorman accepts every peer,
/// for any length of time, and makes room for whatever length a message is said to have: 4 GiB for 32 bytes. On the
/// thread of `backend`.
caf::io::doorman_ptr make_doorman(caf::io::network::default_multiplexer& backend, int listening,
                                  const doorman_limits& limits = {}, std::unique_ptr<greeting_desk> desk = {});

/// A connection that this process has made, and over which both ends have greeted, which is guarded as those that the
/// doorman takes.
caf::io::scribe_ptr make_connection(caf::io::network::default_multiplexer& backend, int connected, session with,
                                    tls_channel_ptr tls = {});

/// Buffers of a connection of CAF's protocol, of which a process may have many.
inline constexpr tls_limits control_tls_limits{.batch_bytes = 32u << 10};

/// Gives the socket a number that none has had lately.
int renumbered(int fd);

} // namespace ringmaster
