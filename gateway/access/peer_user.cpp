#include "gateway/access/peer_user.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace ringmaster::gateway {

namespace {

struct question {
  nlmsghdr head{};
  inet_diag_req_v2 what{};
};

struct netlink_socket {
  netlink_socket() : descriptor(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)) {
    const timeval limit{1, 0};
    ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  ~netlink_socket() {
    if (descriptor >= 0)
      ::close(descriptor);
  }
  netlink_socket(const netlink_socket&) = delete;
  netlink_socket& operator=(const netlink_socket&) = delete;

  const int descriptor;
};

caf::error unknown(int number) {
  return make_error(errc::io_error,
                    fmt::format("the kernel does not say whose a connection is: {}", std::strerror(number)));
}

caf::expected<question> question_about(const local_connection& x) {
  question ask;
  ask.head.nlmsg_len = sizeof ask;
  ask.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  ask.head.nlmsg_flags = NLM_F_REQUEST;
  auto& id = ask.what.id;
  const auto read = [&](int family) {
    return ::inet_pton(family, x.from.c_str(), id.idiag_src) == 1 && ::inet_pton(family, x.to.c_str(), id.idiag_dst) == 1;
  };
  const int family = read(AF_INET) ? AF_INET : read(AF_INET6) ? AF_INET6 : AF_UNSPEC;
  if (family == AF_UNSPEC)
    return invalid(fmt::format("{} and {} are not two numeric addresses of one kind", x.from, x.to));
  ask.what.sdiag_family = static_cast<uint8_t>(family);
  ask.what.sdiag_protocol = IPPROTO_TCP;
  ask.what.idiag_states = ~0u;
  id.idiag_sport = htons(x.from_port);
  id.idiag_dport = htons(x.to_port);
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return ask;
}

} // namespace

caf::expected<uid_t> user_of(const local_connection& x) {
  const auto ask = question_about(x);
  if (!ask)
    return ask.error();
  const netlink_socket kernel;
  if (kernel.descriptor < 0 || ::send(kernel.descriptor, &*ask, sizeof *ask, 0) < 0)
    return unknown(errno);
  alignas(nlmsghdr) char answer[4096];
  const auto size = ::recv(kernel.descriptor, answer, sizeof answer, 0);
  if (size < 0)
    return unknown(errno);
  nlmsghdr head{};
  if (static_cast<size_t>(size) < sizeof head)
    return unknown(EPROTO);
  std::memcpy(&head, answer, sizeof head);
  const auto holds = [&](size_t bytes) { return static_cast<size_t>(size) >= NLMSG_HDRLEN + bytes; };
  if (head.nlmsg_type == NLMSG_ERROR && holds(sizeof(nlmsgerr))) {
    nlmsgerr problem{};
    std::memcpy(&problem, answer + NLMSG_HDRLEN, sizeof problem);
    if (problem.error == -ENOENT)
      return make_error(errc::unreachable, fmt::format("no process of this host has a connection from {}:{} to {}:{}",
                                                       x.from, x.from_port, x.to, x.to_port));
    return unknown(-problem.error);
  }
  if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY || !holds(sizeof(inet_diag_msg)))
    return unknown(EPROTO);
  inet_diag_msg found{};
  std::memcpy(&found, answer + NLMSG_HDRLEN, sizeof found);
  return found.idiag_uid;
}

caf::error check_own_user(const local_connection& x, const user_finder& find) {
  const auto user = find(x);
  if (!user)
    return make_error(errc::permission_denied, render(user.error()));
  if (*user == ::geteuid() || *user == 0)
    return caf::none;
  return make_error(errc::permission_denied,
                    fmt::format("user {} may not use the gateway of user {}", *user, ::geteuid()));
}

} // namespace ringmaster::gateway
