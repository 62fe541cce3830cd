#include "actors/hosts/reach.hpp"

#include "messages/errc.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <memory>
#include <netdb.h>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace ringmaster {

namespace {

using time_point = std::chrono::steady_clock::time_point;

struct socket_closer {
  int fd;
  ~socket_closer() {
    if (fd >= 0)
      ::close(fd);
  }
};

std::string numeric(const sockaddr* address, socklen_t size) {
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (::getnameinfo(address, size, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "?";
  return fmt::format("{}:{}", host, port);
}

/// Which of our addresses would be taken to get there.
std::string own_end(int fd) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) != 0)
    return "here";
  return numeric(reinterpret_cast<const sockaddr*>(&own), size);
}

/// The number of an error, 0 where the connection is there.
int connect_within(int fd, const addrinfo& to, time_point until) {
  if (::connect(fd, to.ai_addr, to.ai_addrlen) == 0)
    return 0;
  if (errno != EINPROGRESS)
    return errno;
  for (;;) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd waits{fd, POLLOUT, 0};
    auto ready = ::poll(&waits, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready <= 0)
      return ETIMEDOUT;
    int problem = 0;
    socklen_t size = sizeof problem;
    return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &size) != 0 ? errno : problem;
  }
}

std::string advice(int problem) {
  if (problem == ECONNREFUSED)
    return "nobody listens there: is the process running, and the port right?";
  if (problem == ETIMEDOUT)
    return "nothing came back: does a firewall drop the port, or is it an address that only its own host knows?";
  return "is there a route, and the address one that other hosts can use?";
}

} // namespace

caf::error reach(const endpoint& there, caf::timespan limit) {
  auto until = std::chrono::steady_clock::now() + limit;
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  auto unknown = ::getaddrinfo(there.host.c_str(), std::to_string(there.port).c_str(), &wanted, &found);
  if (unknown != 0) // CAF says of a host that nobody knows that it refused the connection
    return make_error(errc::invalid_argument,
                      fmt::format("the host \"{}\" of {}:{} is unknown ({}); is it spelt right?", there.host,
                                  there.host, there.port, ::gai_strerror(unknown)));
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses{found, &::freeaddrinfo};
  caf::error latest;
  for (auto* address = found; address != nullptr; address = address->ai_next) {
    socket_closer one{::socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    auto problem = one.fd < 0 ? errno : connect_within(one.fd, *address, until);
    if (problem == 0)
      return caf::none;
    latest = make_error(errc::unreachable, fmt::format("{}:{} ({}) cannot be reached from {}: {}; {}", there.host,
                                                       there.port, numeric(address->ai_addr, address->ai_addrlen),
                                                       own_end(one.fd), std::strerror(problem), advice(problem)));
  }
  return latest;
}

} // namespace ringmaster
