#pragma once

#include <caf/io/doorman.hpp>
#include <caf/io/network/default_multiplexer.hpp>

#include <chrono>
#include <cstddef>

namespace ringmaster {

/// What whoever connects to CAF's protocol may cost before it has greeted as a process of ringmaster does, and after.
struct doorman_limits {
  std::chrono::milliseconds greeting = std::chrono::seconds{5}; ///< Then the connection is closed.
  size_t greeting_bytes_max = 64u << 10;                        ///< A greeting has an id, some 30 bytes.
  size_t message_bytes_max = (1u << 30) + (1u << 20); ///< As `route.chunk-bytes` may be, and what is around it.
  size_t strangers_max = 0; ///< Who have not greeted; one more takes the oldest one's place. 0: a quarter of the
                            ///< process's descriptors, 64 at least.
};

/// Takes connections at a socket that listens. CAF's own doorman lets in whoever comes, for as long as he likes, and
/// makes room for whatever length a message is said to have: 4 GiB for 32 bytes. On the thread of `backend`.
caf::io::doorman_ptr make_doorman(caf::io::network::default_multiplexer& backend, int listening,
                                  const doorman_limits& limits = {});

/// Gives the socket a number that none has had lately.
int renumbered(int fd);

} // namespace ringmaster
