#pragma once

#include "actors/links/sockets.hpp"
#include "actors/links/tls_channel.hpp"
#include "runtime/trust/greeting.hpp"

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ringmaster {

/// The greeting of a connection that this process has made, on its socket.
class socket_greeting {
public:
  /// `hosts`: names and addresses of which the other end's certificate has one; not empty with a certificate.
  socket_greeting(greeting_initiator::finder own, listener_kind whom, const std::string& where,
                  std::vector<std::string> hosts = {}, const tls_limits& limits = {})
    : state_(std::move(own), whom, where), hosts_(std::move(hosts)), limits_(limits) {}

  struct result {
    session with;
    tls_channel_ptr tls; ///< Null: the connection is not encrypted.
  };
  /// Reads what has come, without waiting, and answers. Returns none while more has to come. Errors: as of
  /// greeting_initiator; unauthenticated, for a certificate that either end refuses.
  std::optional<caf::expected<result>> advance(int socket);

private:
  /// Of TLS. Returns whether the greeting goes on.
  caf::expected<bool> shake_hands(int socket);
  /// Where the other end has closed the connection, what it has said before tells why.
  void send(int socket, std::span<const std::byte> bytes);

  greeting_initiator state_;
  std::vector<std::string> hosts_;
  tls_limits limits_;
  tls_channel_ptr tls_;
  bool shakes_hands_ = false;
};

/// The same, and waits until `goes_on`, which is asked every 20 ms, is false. Errors: as above; that of `goes_on`.
caf::expected<socket_greeting::result> greet(int socket, socket_greeting greeting,
                                             const std::function<caf::error()>& goes_on);

} // namespace ringmaster
