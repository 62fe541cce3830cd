#include "actors/hosts/open_connection.hpp"

#include "actors/scheduling/awake_clock.hpp"
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/text/own_address.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <future>
#include <memory>
#include <netdb.h>
#include <poll.h>
#include <thread>
#include <utility>

namespace ringmaster {

namespace {

std::atomic<int> wanted_no_more{0};

using addresses = std::shared_ptr<addrinfo>;

/// The system's number of an error, or addresses.
using lookup = std::pair<int, addresses>;

lookup look_up(const endpoint& there) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  // /etc/hosts may know it by its IPv4 address alone, which a host may not have.
  const bool is_ipv6_loopback = there.host == "localhost" && loopback_address() == "::1";
  const std::string host = is_ipv6_loopback ? "::1" : there.host;
  auto problem = ::getaddrinfo(host.c_str(), std::to_string(there.port).c_str(), &wanted, &found);
  return {problem, found == nullptr ? addresses{} : addresses{found, &::freeaddrinfo}};
}

/// The system's own call cannot be cancelled, and takes as long as the host's configuration says: it goes on unawaited.
caf::expected<addresses> addresses_of(const endpoint& there, awake_clock::time_point until) {
  std::promise<lookup> promise;
  auto coming = promise.get_future();
  std::thread{[there, answer = std::move(promise)]() mutable { answer.set_value(look_up(there)); }}.detach();
  while (coming.wait_for(no_more_connecting::look) != std::future_status::ready) {
    if (no_more_connecting::is_so())
      return no_more_connecting::error();
    if (awake_clock::now() >= until)
      return make_error(errc::timed_out, fmt::format("the host \"{}\" of {} was not found in time: no name server "
                                                     "answers; its address in place of its name needs none",
                                                     there.host, text_of(there)));
  }
  auto [unknown, found] = coming.get();
  if (unknown != 0) // CAF reports an unknown host as a refused connection
    return invalid(fmt::format("the host \"{}\" of {} is unknown ({}); is it spelt right?", there.host, text_of(there),
                               ::gai_strerror(unknown)));
  return found;
}

/// An error number, 0 if the connection was made; ECANCELED if it is no longer wanted.
int connect_within(int fd, const addrinfo& to, awake_clock::time_point until) {
  if (::connect(fd, to.ai_addr, to.ai_addrlen) == 0)
    return 0;
  if (errno != EINPROGRESS)
    return errno;
  for (;;) {
    pollfd waits{fd, POLLOUT, 0};
    auto ready = ::poll(&waits, 1, static_cast<int>(no_more_connecting::look.count()));
    if (ready > 0) {
      int problem = 0;
      socklen_t size = sizeof problem;
      return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &size) != 0 ? errno : problem;
    }
    if (no_more_connecting::is_so())
      return ECANCELED;
    if (awake_clock::now() >= until)
      return ETIMEDOUT;
  }
}

} // namespace

no_more_connecting::no_more_connecting() {
  ++wanted_no_more;
}

no_more_connecting::~no_more_connecting() {
  --wanted_no_more;
}

bool no_more_connecting::is_so() {
  return wanted_no_more > 0;
}

caf::error no_more_connecting::error() {
  return make_error(errc::aborted, "this process is exiting, and makes no more connections");
}

caf::expected<open_socket> open_connection(const endpoint& there, caf::timespan limit, listener_kind whom) {
  auto until = awake_clock::now() + limit;
  TRY(found, addresses_of(there, until));
  caf::error latest;
  for (auto* address = found->get(); address != nullptr; address = address->ai_next) {
    open_socket one{::socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    auto problem = one.descriptor < 0 ? errno : connect_within(one.descriptor, *address, until);
    if (problem == 0 && is_its_own_peer(one.descriptor))
      problem = ECONNREFUSED;
    if (problem == 0)
      return one;
    if (problem == ECANCELED)
      return no_more_connecting::error();
    latest = make_error(errc::unreachable,
                        fmt::format("{} ({}) cannot be reached from {}: {}; {}", text_of(there),
                                    numeric_text(address->ai_addr, address->ai_addrlen), own_end_text(one.descriptor),
                                    std::strerror(problem), connect_advice(problem, whom)));
  }
  return latest;
}

} // namespace ringmaster
