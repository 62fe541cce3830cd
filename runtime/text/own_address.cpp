#include "runtime/text/own_address.hpp"

#include "messages/errc.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <optional>
#include <sys/socket.h>
#include <unistd.h>

namespace ringmaster {

namespace {

/// Empty if there is no route to `there`.
std::string own_end(const addrinfo& there) {
  int fd = ::socket(there.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return {};
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  char text[NI_MAXHOST];
  bool known = ::connect(fd, there.ai_addr, there.ai_addrlen) == 0 // sends nothing: it is a datagram socket
               && ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0
               && ::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST)
                    == 0;
  ::close(fd);
  return known ? text : std::string{};
}

struct numeric_host {
  sockaddr_storage storage{};
  socklen_t size = 0;

  bool is_ipv6() const { return storage.ss_family == AF_INET6; }
  const in6_addr& ipv6() const { return reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr; }
  /// In the host's byte order; none for an IPv6 address that is not a mapped IPv4 address.
  std::optional<uint32_t> ipv4() const {
    if (!is_ipv6())
      return ntohl(reinterpret_cast<const sockaddr_in&>(storage).sin_addr.s_addr);
    if (!IN6_IS_ADDR_V4MAPPED(&ipv6()))
      return std::nullopt;
    uint32_t result = 0;
    std::memcpy(&result, ipv6().s6_addr + 12, sizeof result);
    return ntohl(result);
  }
};

/// None for a name.
std::optional<numeric_host> numeric(const std::string& host) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_DGRAM;
  wanted.ai_flags = AI_NUMERICHOST;
  if (host.empty() || ::getaddrinfo(host.c_str(), nullptr, &wanted, &found) != 0)
    return std::nullopt;
  numeric_host result;
  std::memcpy(&result.storage, found->ai_addr, found->ai_addrlen);
  result.size = found->ai_addrlen;
  ::freeaddrinfo(found);
  return result;
}

/// Uses a datagram socket, which takes no port from listening processes.
bool can_bind(const numeric_host& x, bool both_families = false) {
  int fd = ::socket(x.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return false;
  const int off = 0;
  bool bound = (!both_families || ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0)
               && ::bind(fd, reinterpret_cast<const sockaddr*>(&x.storage), x.size) == 0;
  ::close(fd);
  return bound;
}

} // namespace

bool is_loopback(const std::string& host) {
  if (host == "localhost" || host == "ip6-localhost" || host == "ip6-loopback") // names in Debian's /etc/hosts
    return true;
  const auto address = numeric(host);
  if (!address)
    return false;
  const auto ipv4 = address->ipv4();
  return ipv4 ? (*ipv4 >> 24) == 127 : IN6_IS_ADDR_LOOPBACK(&address->ipv6());
}

bool is_any_address(const std::string& host) {
  const auto address = numeric(host);
  if (!address)
    return false;
  const auto ipv4 = address->ipv4();
  return ipv4 ? *ipv4 == 0 : IN6_IS_ADDR_UNSPECIFIED(&address->ipv6());
}

bool is_own_address(const std::string& host) {
  const auto address = numeric(host);
  return address && !is_any_address(host) && can_bind(*address);
}

std::string loopback_address() {
  return is_own_address("127.0.0.1") || !is_own_address("::1") ? "127.0.0.1" : "::1";
}

std::string listening_address(const std::string& host) {
  return host == "localhost" ? loopback_address() : without_brackets(host);
}

std::string any_address() {
  return can_bind(*numeric("::"), true) ? "::" : "0.0.0.0";
}

std::vector<std::string> addresses_of_host() {
  ifaddrs* found = nullptr;
  std::vector<std::string> result;
  if (::getifaddrs(&found) != 0)
    return result;
  for (auto* x = found; x != nullptr; x = x->ifa_next) {
    if (x->ifa_addr == nullptr || (x->ifa_flags & IFF_UP) == 0 || (x->ifa_flags & IFF_LOOPBACK) != 0)
      continue;
    char host[NI_MAXHOST];
    auto size = x->ifa_addr->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    bool link_local = x->ifa_addr->sa_family == AF_INET6
                      && IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(x->ifa_addr)->sin6_addr);
    if ((x->ifa_addr->sa_family == AF_INET || x->ifa_addr->sa_family == AF_INET6) && !link_local
        && ::getnameinfo(x->ifa_addr, static_cast<socklen_t>(size), host, sizeof host, nullptr, 0, NI_NUMERICHOST) == 0)
      result.emplace_back(host);
  }
  ::freeifaddrs(found);
  return result;
}

std::string own_addresses_text() {
  auto all = addresses_of_host();
  for (std::string loopback : {"127.0.0.1", "::1"})
    if (is_own_address(loopback))
      all.push_back(loopback);
  if (all.empty())
    return "it has none: is its loopback interface up?";
  return fmt::format("it has {}, and {} stands for all", fmt::join(all, ", "),
                     is_own_address("127.0.0.1") ? "0.0.0.0" : any_address());
}

std::string own_host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

caf::expected<std::string> own_address_towards(const endpoint& there) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_DGRAM;
  if (auto problem = ::getaddrinfo(there.host.c_str(), std::to_string(there.port).c_str(), &wanted, &found);
      problem != 0)
    return invalid(fmt::format("the host \"{}\" is unknown ({}); is it spelt right?", there.host,
                               ::gai_strerror(problem)));
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses{found, &::freeaddrinfo};
  for (auto* x = found; x != nullptr; x = x->ai_next)
    if (auto own = own_end(*x); !own.empty())
      return own;
  return make_error(errc::io_error, fmt::format("there is no route to {}: {}", there.host, std::strerror(errno)));
}

} // namespace ringmaster
