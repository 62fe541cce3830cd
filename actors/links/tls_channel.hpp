#pragma once

#include "actors/links/authenticated_records.hpp"
#include "runtime/trust/tls_session.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

namespace ringmaster {

/// TLS over a socket that does not block, which may leave the bytes after the greeting to `authenticated_records`. The
/// caller owns the socket, whose number may change. One thread at a time.
class tls_channel {
public:
  /// For a connection that was accepted.
  explicit tls_channel(tls_identity_ptr own, const tls_limits& limits = {})
    : session_(std::move(own), limits), accepts_(true) {}
  /// For one that was made to one of these hosts.
  tls_channel(tls_identity_ptr own, std::vector<std::string> hosts, const tls_limits& limits = {})
    : session_(std::move(own), std::move(hosts), limits), accepts_(false) {}

  /// Reads and answers what has come of the handshake.
  tls_session::step handshake(int socket);
  /// Until then no byte after the record that is read is taken from the socket, so that who waits for the socket to be
  /// readable misses nothing.
  /// `as`: from now on. Returns false if the other end has sent more than its greeting.
  bool greeted(protection as);

  /// As ::recv and ::send: a count of bytes, 0 where the other end has closed the connection, or -1 and `errno`;
  /// EPROTO: see `failure()`. What `send` returns has been given to the system. Where that has no room, the next call
  /// has to start with the same bytes.
  /// `receive` fills what it is given, as far as it has come; `receive_some` returns with the first bytes.
  ssize_t receive(int socket, std::span<std::byte> to);
  ssize_t receive_some(int socket, std::span<std::byte> to);
  ssize_t send(int socket, std::span<const std::span<const std::byte>> parts);
  ssize_t send(int socket, std::span<const std::byte> bytes) { return send(socket, std::span{&bytes, 1}); }

  /// Whether `receive` has something without more from the socket.
  bool has_more() const { return records_ ? records_->has_more() : session_.has_more(); }
  uint64_t bytes_come() const { return session_.bytes_come(); }
  tls_peer peer() const { return session_.peer(); }
  const tls_failure& failure() const;

private:
  /// Gives the system what is encrypted. Returns whether all of it; else `errno` says why not.
  bool flush(int socket);

  /// What the system has, as ::recv.
  ssize_t take_in(int socket);

  tls_session session_;
  const bool accepts_;
  bool greeted_ = false;
  std::optional<authenticated_records> records_; ///< In place of the session.
  size_t encrypted_ = 0;                         ///< Of the caller's bytes, which the system has not taken yet.
};

using tls_channel_ptr = std::unique_ptr<tls_channel>;

} // namespace ringmaster
