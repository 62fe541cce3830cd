// Over real sockets, on loopback.
#include "actors/configuration/configuration.hpp"
#include "actors/hosts/connections.hpp"
#include "actors/hosts/open_connection.hpp"

#include "messages/errc.hpp"
#include "messages/interfaces.hpp"
#include "messages/version.hpp"
#include "tests/support/text_search.hpp"

#include <caf/all.hpp>
#include <caf/io/middleman.hpp>
#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <filesystem>
#include <fmt/format.h>
#include <future>
#include <poll.h>
#include <set>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

/// A process's actor system, as far as it can be one here.
struct process {
  struct configuration : caf::actor_system_config {
    configuration() {
      set("scheduler.max-threads", 1);
      set("middleman.heartbeat-interval", caf::timespan{50ms});
      set("middleman.connection-timeout", caf::timespan{10s});
      load<caf::io::middleman>();
      add_messages(*this);
    }
  };

  configuration settings;
  caf::actor_system system{settings};
};

caf::behavior echo(caf::event_based_actor*, uint64_t more) {
  return {[more](uint64_t x) { return x + more; }};
}

struct listening_process : process {
  caf::actor whom = system.spawn(echo, uint64_t{1});
  uint16_t port = *listen_for(whom, system, "127.0.0.1", 0);
  ~listening_process() { caf::anon_send_exit(whom, caf::exit_reason::user_shutdown); }
};

/// The numbers of the sockets that are open.
std::set<int> sockets() {
  std::set<int> result;
  for (auto& entry : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry, gone).string().starts_with("socket:"))
      result.insert(std::stoi(entry.path().filename()));
  }
  return result;
}

/// A port of a socket that is bound and, unless `accepts`, does not listen.
struct bound_port {
  explicit bound_port(bool accepts) : fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof own;
    REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&own), size) == 0);
    REQUIRE((!accepts || ::listen(fd, 8) == 0));
    REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0);
    port = ::ntohs(own.sin_port);
  }
  ~bound_port() { ::close(fd); }

  int fd;
  uint16_t port = 0;
};

} // namespace

TEST_CASE("connections: what is published is found, with its interface, and answers") {
  listening_process there;
  process here;
  auto found = connect_to(here.system, {"localhost", there.port}, 5s);
  REQUIRE_MESSAGE(found, render(found.error()));
  CHECK(found->signature == there.system.message_types(there.whom));
  CHECK(found->protocol == protocol_version);
  caf::scoped_actor self{here.system};
  uint64_t answer = 0;
  self->request(caf::actor_cast<caf::actor>(found->handle), 5s, uint64_t{7})
    .receive([&](uint64_t x) { answer = x; }, [](const caf::error&) {});
  CHECK(answer == 8);
}

TEST_CASE("connections: what speaks another protocol is refused with both, what is not meant as such") {
  listening_process there;
  auto whom = caf::actor_cast<caf::strong_actor_ptr>(there.whom);
  auto coordinators = there.system.message_types<coordinator_actor>();
  auto problem_of = [&](const published_actor& found) {
    auto taken = taken_as<coordinator_actor>(found, there.system, "host:7", "coordinator");
    return taken ? std::string{} : render(taken.error());
  };
  CHECK(problem_of({whom, coordinators, protocol_version}) == "");
  for (auto other : {protocol_version - 1, protocol_version + 1}) {
    auto problem = problem_of({whom, {"some<other>"}, other});
    CHECK(contains(problem, fmt::format("the coordinator at host:7 speaks protocol {} of ringmaster", other)));
    CHECK(contains(problem, fmt::format("this process protocol {}", protocol_version)));
  }
  CHECK(contains(problem_of({whom, coordinators, 0}), "protocol 4 or an older one")); // which did not say so
  for (auto& other : {published_actor{whom, {"some<other>"}, 0}, published_actor{nullptr, {}, 0},
                      published_actor{whom, {"some<other>"}, protocol_version}})
    CHECK(contains(problem_of(other), "host:7 answers, but it is no ringmaster coordinator"));
}

TEST_CASE(
  "connections: no number of a socket comes again soon, since CAF would take the new connection for the old one") {
  listening_process there;
  std::set<int> seen = sockets();
  for (int round = 0; round < 5; ++round) {
    process here;
    REQUIRE(connect_to(here.system, {"127.0.0.1", there.port}, 5s));
    int fresh = 0;
    for (auto fd : sockets())
      fresh += seen.insert(fd).second ? 1 : 0;
    CHECK(fresh == 2); // both ends
  }
}

TEST_CASE("connections: whoever does not answer at once is waited for, as long as was said, heartbeats or not") {
  process here;
  bound_port mute{true};
  auto begun = std::chrono::steady_clock::now();
  auto no_answer = connect_to(here.system, {"127.0.0.1", mute.port}, 400ms);
  auto took = std::chrono::steady_clock::now() - begun;
  REQUIRE(!no_answer);
  CHECK(code_of(no_answer.error()) == errc::timed_out);
  CHECK(took >= 400ms); // with a heartbeat every 50 ms
}

TEST_CASE("connections: nobody there, nobody known and nobody who answers are told apart") {
  process here;
  bound_port silent{false};
  auto refused = connect_to(here.system, {"127.0.0.1", silent.port}, 5s);
  REQUIRE(!refused);
  CHECK(code_of(refused.error()) == errc::unreachable);
  CHECK(contains(render(refused.error()), fmt::format("127.0.0.1:{} (127.0.0.1:{}) cannot be reached from 127.0.0.1:",
                                                      silent.port, silent.port)));
  CHECK(contains(render(refused.error()), "no process listens there: is it running, and is the port right?"));
  CHECK(contains(render(refused.error()), "a coordinator needs --host ADDRESS (coordinator.host)"));
  CHECK(!contains(render(refused.error()), "listen-host"));
  refused = connect_to(here.system, {"127.0.0.1", silent.port}, 5s, listener_kind::node);
  REQUIRE(!refused);
  CHECK(contains(render(refused.error()), "A node listens at its --listen-host (node.listen-host)"));
  auto unknown = connect_to(here.system, {"no-such-host.invalid", 1}, 5s);
  REQUIRE(!unknown);
  CHECK(code_of(unknown.error()) == errc::invalid_argument);
  bound_port mute{true};
  auto no_answer = connect_to(here.system, {"127.0.0.1", mute.port}, 100ms);
  REQUIRE(!no_answer);
  CHECK(code_of(no_answer.error()) == errc::timed_out);
  CHECK(contains(render(no_answer.error()), "accepts connections, and has not answered in "));
  CHECK(contains(render(no_answer.error()), "it is stopped, or is no process of ringmaster"));
  bound_port deaf{true};
  REQUIRE(::listen(deaf.fd, 0) == 0); // as long as nobody accepts, what does not fit is dropped
  auto fills = open_connection({"127.0.0.1", deaf.port}, 5s);
  REQUIRE(fills);
  auto dropped = connect_to(here.system, {"127.0.0.1", deaf.port}, 300ms);
  REQUIRE(!dropped);
  CHECK(code_of(dropped.error()) == errc::unreachable);
  CHECK(contains(render(dropped.error()), "has not taken a connection in ")); // so many seconds: more on a busy machine
  CHECK(contains(render(dropped.error()), " s: nothing came back; does the host run"));
  CHECK(render(caf::make_error(caf::sec::connection_timeout))
        == "nothing came from there for middleman.connection-timeout");
}

TEST_CASE("connections: who cannot listen says whether it is the host") {
  listening_process there;
  auto problem_at = [&](const std::string& host, uint16_t port) {
    auto listens = listen_for(there.whom, there.system, host, port);
    return listens ? caf::error{} : listens.error();
  };
  auto unknown = problem_at("no-such-host.invalid", 0), elsewhere = problem_at("192.0.2.7", 0);
  CHECK(code_of(unknown) == errc::invalid_argument);
  CHECK(contains(render(unknown), "cannot listen at the host \"no-such-host.invalid\", which is unknown ("));
  CHECK(code_of(elsewhere) == errc::invalid_argument);
  CHECK(contains(render(elsewhere), "cannot listen at 192.0.2.7, which is no address of this host; it has "));
  bound_port taken{true};
  CHECK(code_of(problem_at("127.0.0.1", taken.port)) == errc::io_error);
  CHECK_FALSE(problem_at("localhost", 0));
}

TEST_CASE("connections: whoever ends waits neither for an answer nor for a host that drops what is sent to it") {
  process here;
  bound_port mute{true}, deaf{true};
  REQUIRE(::listen(deaf.fd, 0) == 0); // as long as nobody accepts, what does not fit is dropped
  auto fills = open_connection({"127.0.0.1", deaf.port}, 5s);
  REQUIRE(fills);
  CHECK(code_of(open_connection({"127.0.0.1", deaf.port}, 1ms).error()) == errc::unreachable);
  auto begun = std::chrono::steady_clock::now();
  auto unanswered = std::async(std::launch::async, [&] {
    return connect_to(here.system, {"127.0.0.1", mute.port}, 20s);
  });
  auto dropped = std::async(std::launch::async, [&] { return open_connection({"127.0.0.1", deaf.port}, 20s); });
  pollfd comes{mute.fd, POLLIN, 0};
  REQUIRE(::poll(&comes, 1, 5000) == 1); // it is under way
  {
    no_more_connecting at_once;
    CHECK(code_of(unanswered.get().error()) == errc::aborted);
    CHECK(code_of(dropped.get().error()) == errc::aborted);
    CHECK(code_of(connect_to(here.system, {"127.0.0.1", mute.port}, 20s).error()) == errc::aborted);
  }
  CHECK(std::chrono::steady_clock::now() - begun < 5s);
}

TEST_CASE("connections: a process ends behind the connection that it is still making") {
  bound_port deaf{true};
  REQUIRE(::listen(deaf.fd, 0) == 0);
  auto fills = open_connection({"127.0.0.1", deaf.port}, 5s);
  REQUIRE(fills);
  auto given_up = std::make_shared<std::promise<caf::error>>();
  auto ended = std::make_shared<std::promise<void>>();
  auto begins = given_up->get_future();
  auto ends = ended->get_future();
  std::thread{[=, port = deaf.port] { // not joined: it may never end
    {
      process here;
      given_up->set_value(connect_to(here.system, {"127.0.0.1", port}, 100ms).error());
    }
    ended->set_value();
  }}
    .detach();
  CHECK(code_of(begins.get()) == errc::unreachable);
  open_socket taken{::accept(deaf.fd, nullptr, nullptr)}; // now there is room for what the system sends again
  CHECK(ends.wait_for(10s) == std::future_status::ready);
}
