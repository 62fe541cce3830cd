#pragma once

#include "actors/links/sockets.hpp"
#include "runtime/trust/greeting.hpp"

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <functional>
#include <optional>
#include <string>

namespace ringmaster {

/// The greeting of a connection that this process has made, on its socket.
class socket_greeting {
public:
  socket_greeting(greeting_initiator::finder own, listener_kind whom, const std::string& where)
    : state_(std::move(own), whom, where) {}

  /// Reads what has come, without waiting, and answers. Returns none while more has to come. Errors: as of
  /// greeting_initiator.
  std::optional<caf::expected<session>> advance(int socket);

private:
  greeting_initiator state_;
};

/// The same, and waits until `goes_on`, which is asked every 20 ms, is false. Errors: as above; that of `goes_on`.
caf::expected<session> greet(int socket, socket_greeting greeting, const std::function<caf::error()>& goes_on);

} // namespace ringmaster
