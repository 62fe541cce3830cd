#include "actors/hosts/connections.hpp"

#include "actors/links/sockets.hpp"
#include "messages/errc.hpp"

#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/middleman_actor_impl.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/doorman_impl.hpp>
#include <caf/scoped_actor.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <netdb.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace ringmaster {

namespace {

using time_point = std::chrono::steady_clock::time_point;

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

/// Connects within `limit`; returns the socket. Errors as of connect_to.
caf::expected<int> open_connection(const endpoint& there, caf::timespan limit) {
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
    open_socket one{::socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    auto problem = one.descriptor < 0 ? errno : connect_within(one.descriptor, *address, until);
    if (problem == 0 && is_its_own_peer(one.descriptor))
      problem = ECONNREFUSED;
    if (problem == 0)
      return one.release();
    latest = make_error(errc::unreachable,
                        fmt::format("{}:{} ({}) cannot be reached from {}: {}; {}", there.host, there.port,
                                    numeric_text(address->ai_addr, address->ai_addrlen), own_end_text(one.descriptor),
                                    std::strerror(problem), connect_advice(problem)));
  }
  return latest;
}

/// Gives the socket a number that none has had lately.
int renumbered(int fd) {
  static std::mutex guard;
  static int next = 0;
  std::scoped_lock lock{guard};
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  auto lowest = static_cast<int>(std::min<rlim_t>(files.rlim_cur / 2, 1024)); // below are those of everybody else
  auto made = ::fcntl(fd, F_DUPFD_CLOEXEC, std::max(next, lowest));
  if (made < 0)
    made = ::fcntl(fd, F_DUPFD_CLOEXEC, lowest); // once around
  if (made < 0)
    return fd;
  next = made + 1;
  ::close(fd);
  return made;
}

using multiplexer = caf::io::network::default_multiplexer;

class numbering_doorman final : public caf::io::network::doorman_impl {
public:
  using doorman_impl::doorman_impl;

  bool new_connection() override {
    if (!detached())
      acceptor_.accepted_socket() = renumbered(acceptor_.accepted_socket());
    return doorman_impl::new_connection();
  }
};

/// CAF's actor that connects and listens, with our sockets.
class connector final : public caf::io::middleman_actor_impl {
public:
  using middleman_actor_impl::middleman_actor_impl;

protected:
  caf::expected<caf::io::scribe_ptr> connect(const std::string& host, uint16_t port) override {
    constexpr auto limit = std::chrono::seconds{3};
    auto fd = open_connection({host, port}, limit);
    if (!fd)
      return std::move(fd.error());
    return backend().new_scribe(renumbered(*fd));
  }

  caf::expected<caf::io::doorman_ptr> open(uint16_t port, const char* address, bool reuse) override {
    auto fd = caf::io::network::new_tcp_acceptor_impl(port, address, reuse);
    if (!fd)
      return std::move(fd.error());
    return caf::io::doorman_ptr{caf::make_counted<numbering_doorman>(backend(), renumbered(*fd))};
  }

private:
  multiplexer& backend() { return static_cast<multiplexer&>(system().middleman().backend()); }
};

/// On a thread of its own: whoever is silent there holds up nobody else.
caf::io::middleman_actor make_connector(caf::actor_system& system) {
  auto protocol = system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  return system.spawn<connector, caf::detached + caf::hidden>(protocol);
}

} // namespace

caf::expected<published_actor> connect_to(caf::actor_system& system, const endpoint& there, caf::timespan limit) {
  auto until = std::chrono::steady_clock::now() + limit;
  caf::scoped_actor self{system};
  for (;;) {
    auto connects = make_connector(system);
    caf::error problem;
    published_actor found;
    self
      ->request(connects, std::max<caf::timespan>(until - std::chrono::steady_clock::now(), caf::timespan{0}),
                caf::connect_atom_v, there.host, there.port)
      .receive(
        [&](const caf::node_id&, const caf::strong_actor_ptr& handle, const std::set<std::string>& signature) {
          found = {handle, signature};
        },
        [&](caf::error& x) { problem = std::move(x); });
    self->send_exit(connects, caf::exit_reason::kill);
    if (!problem)
      return found;
    if (code_of(problem) != errc::ok)
      return problem;
    // CAF gives up whoever has not answered by its next heartbeat, however long that is: he may only stand still.
    bool too_early = problem == caf::sec::connection_timeout && std::chrono::steady_clock::now() < until;
    if (!too_early)
      return make_error(
        problem == caf::sec::request_timeout || problem == caf::sec::connection_timeout ? errc::timed_out
                                                                                        : errc::unreachable,
        fmt::format("{}:{} accepts connections and does not answer as a process of ringmaster would "
                    "within {:.1f} s: {}",
                    there.host, there.port, std::chrono::duration<double>{limit}.count(), render(problem)));
  }
}

caf::expected<uint16_t> listen_for(caf::actor_system& system, const caf::strong_actor_ptr& whom,
                                   std::set<std::string> signature, const std::string& host, uint16_t port) {
  auto listens = make_connector(system);
  caf::scoped_actor self{system};
  caf::expected<uint16_t> result = uint16_t{0};
  constexpr auto limit = std::chrono::seconds{10}; // our own thread asks nobody else
  self->request(listens, limit, caf::publish_atom_v, port, whom, std::move(signature), host, true)
    .receive([&](uint16_t given) { result = given; },
             [&](const caf::error& problem) {
               result = problem == caf::sec::request_timeout
                          ? make_error(errc::timed_out, "CAF's own thread for connections did not answer within 10 s")
                          : make_error(errc::io_error, render(problem));
             });
  self->send_exit(listens, caf::exit_reason::kill);
  return result;
}

} // namespace ringmaster
