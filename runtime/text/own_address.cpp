#include "runtime/text/own_address.hpp"

#include "messages/errc.hpp"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ringmaster {

namespace {

/// Empty where there is no route to `there`.
std::string own_end(const addrinfo& there) {
  int fd = ::socket(there.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return {};
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  char text[NI_MAXHOST];
  bool known = ::connect(fd, there.ai_addr, there.ai_addrlen) == 0 // a datagram socket is only told where to
               && ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0
               && ::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST)
                    == 0;
  ::close(fd);
  return known ? text : std::string{};
}

} // namespace

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

caf::expected<std::string> own_address_towards(const endpoint& there) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_DGRAM;
  if (auto problem = ::getaddrinfo(there.host.c_str(), std::to_string(there.port).c_str(), &wanted, &found);
      problem != 0)
    return make_error(errc::invalid_argument, fmt::format("the host \"{}\" is unknown ({}); is it spelt right?",
                                                          there.host, ::gai_strerror(problem)));
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses{found, &::freeaddrinfo};
  for (auto* x = found; x != nullptr; x = x->ai_next)
    if (auto own = own_end(*x); !own.empty())
      return own;
  return make_error(errc::io_error, fmt::format("there is no route to {}: {}", there.host, std::strerror(errno)));
}

} // namespace ringmaster
