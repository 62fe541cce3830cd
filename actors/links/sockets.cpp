#include "actors/links/sockets.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

namespace ringmaster {

namespace {

using address_list = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// Null, and the reason, where there is none.
std::pair<address_list, std::string> addresses_at(const endpoint& where, int flags) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags;
  auto problem = ::getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &wanted, &found);
  return {address_list{problem == 0 ? found : nullptr, &::freeaddrinfo}, problem == 0 ? "" : ::gai_strerror(problem)};
}

bool is_loopback(const sockaddr_storage& x) {
  if (x.ss_family == AF_INET)
    return (ntohl(reinterpret_cast<const sockaddr_in&>(x).sin_addr.s_addr) >> 24) == 127;
  return x.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(x).sin6_addr);
}

template <class T>
void set_option(int socket, int level, int name, const T& value) {
  ::setsockopt(socket, level, name, &value, sizeof value); // whatever comes of it: it works without, too
}

/// To be called before there is a connection: the pace that "bbr" has once set stays.
void do_not_pace_loopback(int socket, const sockaddr* address, socklen_t size) {
  sockaddr_storage end{};
  std::memcpy(&end, address, std::min<size_t>(size, sizeof end));
  char used[16] = {};
  socklen_t used_size = sizeof used - 1;
  if (!is_loopback(end) || ::getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, used, &used_size) != 0
      || std::strcmp(used, "bbr") != 0)
    return;
  for (const char* other : {"reno", "cubic"}) // the last that the kernel has
    ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, other, static_cast<socklen_t>(std::strlen(other)));
}

std::string end_text(int socket, decltype(&::getsockname) which, const char* unknown) {
  sockaddr_storage end{};
  socklen_t size = sizeof end;
  if (which(socket, reinterpret_cast<sockaddr*>(&end), &size) != 0)
    return unknown;
  return numeric_text(reinterpret_cast<const sockaddr*>(&end), size);
}

struct listener_texts {
  const char* place;   ///< Where it listens.
  const char* setting; ///< What says so.
};

const listener_texts& texts_of(listener_kind whom) {
  static constexpr listener_texts texts[] = {
    {"For other hosts to reach it, a coordinator needs --host ADDRESS (coordinator.host): without it, it listens at "
     "127.0.0.1",
     "--host (coordinator.host)"},
    {"A node listens at its --listen-host (node.listen-host)", "--listen-host (node.listen-host)"},
    {"A node takes bulk connections at its link.addresses and link.port", "link.addresses"},
  };
  return texts[static_cast<size_t>(whom)];
}

} // namespace

std::string numeric_text(const sockaddr* address, socklen_t size) {
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (::getnameinfo(address, size, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "?";
  return address->sa_family == AF_INET6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

std::string own_end_text(int socket) {
  return end_text(socket, &::getsockname, "here");
}

std::string other_end_text(int socket) {
  return end_text(socket, &::getpeername, "a peer");
}

bool is_its_own_peer(int socket) {
  sockaddr_storage own{}, peer{};
  socklen_t own_size = sizeof own, peer_size = sizeof peer;
  return ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &own_size) == 0
         && ::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0 && own_size == peer_size
         && std::memcmp(&own, &peer, own_size) == 0;
}

std::string connect_advice(int problem, listener_kind whom) {
  const auto& texts = texts_of(whom);
  if (problem == ECONNREFUSED)
    return fmt::format("no process listens there: is it running, and is the port right? {}", texts.place);
  if (problem == EMFILE || problem == ENFILE)
    return "raise the limit on open files, ulimit -n";
  if (problem == ENETUNREACH || problem == EAFNOSUPPORT || problem == EACCES)
    return fmt::format("no way leads there from this host: {} of the other end is to name an address that this host "
                       "can use",
                       texts.setting);
  if (problem == ETIMEDOUT)
    return "nothing came back: does a firewall drop the port, or is it an address that only its own host knows?";
  return "is there a route, and the address one that other hosts can use?";
}

bool send_at_once(int socket, std::span<const std::byte> bytes) {
  return ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(bytes.size());
}

caf::expected<socket_address> numeric_address(const endpoint& where) {
  auto [found, reason] = addresses_at(where, AI_NUMERICHOST | AI_NUMERICSERV);
  if (!found)
    return invalid(fmt::format("\"{}\" is no numeric address: {}", where.host, reason));
  socket_address result;
  std::memcpy(&result.storage, found->ai_addr, found->ai_addrlen);
  result.size = found->ai_addrlen;
  return result;
}

caf::expected<open_socket> listen_at(const endpoint& where) {
  auto [found, reason] = addresses_at(where, AI_PASSIVE);
  for (auto* x = found.get(); x != nullptr; x = x->ai_next) {
    open_socket result{::socket(x->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (result.descriptor < 0) {
      reason = std::strerror(errno);
      continue;
    }
    set_option(result.descriptor, SOL_SOCKET, SO_REUSEADDR, int{1});
    do_not_pace_loopback(result.descriptor, x->ai_addr, x->ai_addrlen); // nor what it accepts
    if (::bind(result.descriptor, x->ai_addr, x->ai_addrlen) == 0 && ::listen(result.descriptor, SOMAXCONN) == 0)
      return result;
    reason = std::strerror(errno);
  }
  return make_error(errc::io_error, fmt::format("cannot take bulk connections at {}: {}; set link.addresses and "
                                                "link.port to values that this host has and no other process uses",
                                                text_of(where), reason));
}

caf::expected<open_socket> begin_connect(const socket_address& there) {
  open_socket result{::socket(there.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (result.descriptor >= 0)
    do_not_pace_loopback(result.descriptor, there.get(), there.size);
  if (result.descriptor >= 0 && (::connect(result.descriptor, there.get(), there.size) == 0 || errno == EINPROGRESS))
    return result;
  auto problem = errno;
  return make_error(errc::unreachable,
                    fmt::format("{}; {}", std::strerror(problem), connect_advice(problem, listener_kind::bulk_link)));
}

void prepare_bulk_socket(int socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, int{1});
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, int{1});
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, int{10}); // seconds
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, int{5});
}

} // namespace ringmaster
