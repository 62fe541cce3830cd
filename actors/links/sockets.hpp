#pragma once

#include "messages/errc.hpp"
#include "runtime/text/endpoint.hpp"
#include "runtime/text/own_address.hpp"
#include "runtime/trust/listener_kind.hpp"

#include <caf/expected.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace ringmaster {

/// A socket, closed with this object.
struct open_socket {
  int descriptor = -1;

  open_socket() = default;
  explicit open_socket(int x) : descriptor(x) {}
  open_socket(open_socket&& x) noexcept : descriptor(x.release()) {}
  open_socket& operator=(open_socket&& x) noexcept {
    std::swap(descriptor, x.descriptor);
    return *this;
  }
  ~open_socket() {
    if (descriptor >= 0)
      ::close(descriptor);
  }
  int release() { return std::exchange(descriptor, -1); }
};

/// An address and port as the system takes it.
struct socket_address {
  sockaddr_storage storage{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

/// "10.0.0.7:4711", "[fe80::1]:4711"
std::string numeric_text(const sockaddr* address, socklen_t size);
/// Which of our addresses is taken; "here" where it is not known.
std::string own_end_text(int socket);
std::string other_end_text(int socket);

/// A process that connects to a port of this host at which none listens may be given that very port for its own end,
/// and is then connected to itself: with enough retries this happens, and it keeps the other process from listening.
bool is_its_own_peer(int socket);

/// What to do if a connection could not be made; `problem` is the system's number.
std::string connect_advice(int problem, listener_kind whom);

/// Sends a few bytes, without waiting. Returns whether all of them fit, as they do on a new connection.
bool send_at_once(int socket, std::span<const std::byte> bytes);

/// Looks up no name. Errors: invalid_argument.
caf::expected<socket_address> numeric_address(const endpoint& where);

/// A socket that takes connections at this address of ours, which may be a name. Errors: io_error.
caf::expected<open_socket> listen_at(const endpoint& where);

/// Starts to connect, without a wait: the socket can be written to when it has come to an end. Errors: unreachable.
caf::expected<open_socket> begin_connect(const socket_address& there);

/// For bulk data: nothing waits for more to be sent with, and a host that is gone is noticed. (On loopback what
/// listen_at and begin_connect give does not pace itself, as some hosts' default "bbr" does.)
void prepare_bulk_socket(int socket);

} // namespace ringmaster
