// Over real sockets, on loopback.
#include "actors/hosts/guarded_connection.hpp"

#include "actors/configuration/configuration.hpp"
#include "actors/hosts/connections.hpp"
#include "actors/hosts/open_connection.hpp"
#include "actors/links/socket_greeting.hpp"

#include <caf/all.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/io/basp/header.hpp>
#include <caf/io/basp/message_type.hpp>
#include <caf/io/middleman.hpp>
#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <fstream>
#include <future>
#include <memory>
#include <numeric>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

using namespace ringmaster;
using namespace std::chrono_literals;
using caf::io::basp::message_type;

namespace {

struct connected_system {
  struct configuration : caf::actor_system_config {
    configuration() {
      set("scheduler.max-threads", 1);
      load<caf::io::middleman>();
      add_messages(*this);
    }
  };

  configuration settings;
  caf::actor_system system{settings};
};

/// A process with an actor that answers a text with its length and sum, and the port where it is.
struct asked_process : connected_system {
  asked_process() {
    auto look_at = [](caf::event_based_actor*, int) -> caf::behavior {
      return {[](const std::string& x) {
        return std::accumulate(x.begin(), x.end(), x.size(), [](size_t sum, char y) { return sum * 31 + uint8_t(y); });
      }};
    };
    actor = system.spawn(look_at, 0); // without arguments CAF binds a reference to none
    port = *listen_for(actor, system, "127.0.0.1", 0, listener_kind::coordinator, {}, 3s);
  }
  ~asked_process() { caf::anon_send_exit(actor, caf::exit_reason::user_shutdown); }

  caf::actor actor;
  uint16_t port = 0;
};

/// Another process that is connected with it, and asks it.
struct asking_process : connected_system {
  explicit asking_process(uint16_t port) {
    auto found = connect_to(system, {"127.0.0.1", port}, 5s);
    REQUIRE(found);
    asked = caf::actor_cast<caf::actor>(found->handle);
  }

  bool is_answered(const std::string& text) {
    const auto right = std::accumulate(text.begin(), text.end(), text.size(),
                                       [](size_t sum, char y) { return sum * 31 + uint8_t(y); });
    caf::scoped_actor self{system};
    bool result = false;
    self->request(asked, 20s, text).receive([&](size_t got) { result = got == right; }, [](const caf::error&) {});
    return result;
  }

  caf::actor asked;
};

std::string basp_header(message_type kind, uint32_t content_bytes, uint8_t flags = 0, uint8_t receiver = 0) {
  std::string result(32, '\0');
  result[0] = static_cast<char>(kind);
  result[3] = static_cast<char>(flags);
  for (int i = 0; i < 4; ++i)
    result[static_cast<size_t>(4 + i)] = static_cast<char>(content_bytes >> (24 - 8 * i));
  result[31] = static_cast<char>(receiver);
  return result;
}

std::string greeting_of(connected_system& as, const caf::node_id& id, uint8_t flags = 0) {
  std::vector<char> content;
  caf::binary_serializer sink{as.system, content};
  REQUIRE_FALSE(sink(id));
  return basp_header(message_type::client_handshake, static_cast<uint32_t>(content.size()), flags)
         + std::string{content.begin(), content.end()};
}

caf::node_id some_id(uint32_t number) {
  return *caf::make_node_id(number, std::string(40, 'a'));
}

constexpr uint8_t selects_connection = caf::io::basp::header::select_connection_flag;

/// One that was admitted.
open_socket visitor_of(const asked_process& x) {
  auto result = std::move(*open_connection({"127.0.0.1", x.port}, 5s));
  socket_greeting nothing_to_prove{[] { return caf::expected<credentials_ptr>{no_credentials()}; },
                                   listener_kind::coordinator, "it"};
  REQUIRE(greet(result.descriptor, std::move(nothing_to_prove), [] { return caf::error{}; }));
  return result;
}

void say(const open_socket& to, const std::string& bytes) {
  REQUIRE(::send(to.descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

struct what_came {
  size_t bytes = 0;
  bool closed = false;
};

/// What comes within the time, or until the other end closes.
what_came hear(const open_socket& by, std::chrono::milliseconds limit) {
  what_came result;
  std::array<char, 4096> buffer;
  for (auto until = std::chrono::steady_clock::now() + limit;;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd waits{by.descriptor, POLLIN, 0};
    if (::poll(&waits, 1, std::max(static_cast<int>(left.count()), 0)) == 0)
      return result;
    auto got = ::recv(by.descriptor, buffer.data(), buffer.size(), 0);
    if (got <= 0) {
      result.closed = true;
      return result;
    }
    result.bytes += static_cast<size_t>(got);
  }
}

size_t resident_bytes() {
  size_t all = 0, resident = 0;
  std::ifstream{"/proc/self/statm"} >> all >> resident;
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

} // namespace

TEST_CASE("guarded connection: a header that claims a GiB reserves some KiB") {
  asked_process x;
  asking_process neighbour{x.port};
  std::vector<open_socket> forgers;
  REQUIRE(neighbour.is_answered("before"));
  const auto before = resident_bytes();
  for (uint32_t i = 0; i < 4; ++i) {
    forgers.push_back(visitor_of(x));
    say(forgers.back(), greeting_of(x, some_id(1000 + i))
                          + basp_header(message_type::direct_message, (1u << 30) - 1, 0, 7) + std::string(1000, 'x'));
  }
  for (auto& each : forgers)
    CHECK_FALSE(hear(each, 100ms).closed); // it may still come
  CHECK(neighbour.is_answered("after"));
  CHECK(resident_bytes() < before + (16u << 20));
}

TEST_CASE("guarded connection: messages of every size come whole, on a new connection and on an old one") {
  asked_process x;
  auto text = [](size_t bytes) {
    std::string result(bytes, '\0');
    for (size_t i = 0; i < bytes; ++i)
      result[i] = static_cast<char>(i * i % 251);
    return result;
  };
  for (size_t bytes : {size_t{60'000}, size_t{1} << 16, size_t{1} << 17, size_t{1'000'003}, size_t{20'000'000}}) {
    CAPTURE(bytes);
    asking_process first{x.port};
    CHECK(first.is_answered(text(bytes)));
    CHECK(first.is_answered(text(10)));
    CHECK(first.is_answered(text(bytes + 1)));
  }
}

TEST_CASE("guarded connection: who repeats a process's greeting gets none of its messages, and ends nothing") {
  asked_process x;
  asking_process honest{x.port};
  REQUIRE(honest.is_answered("hello"));
  auto thief = visitor_of(x);
  say(thief, greeting_of(x, honest.system.node()));
  const auto answer = hear(thief, 200ms);
  CHECK(answer.bytes > 0); // the server's own, which everyone gets
  CHECK_FALSE(answer.closed);
  for (auto text : {"one", "two", "three"})
    CHECK(honest.is_answered(text));
  CHECK(hear(thief, 100ms).bytes == 0);
  // It waits until the process is gone, and what else it sends is not read; then it is closed.
  say(thief, greeting_of(x, honest.system.node(), selects_connection) + basp_header(message_type::heartbeat, 0));
  CHECK(honest.is_answered("four"));
  const auto end = hear(thief, 10s);
  CHECK(end.closed);
  CHECK(end.bytes == 0);
  CHECK(honest.is_answered("five"));
}

TEST_CASE("guarded connection: who has greeted cannot greet as another process") {
  asked_process x;
  asking_process honest{x.port};
  auto thief = visitor_of(x);
  say(thief, greeting_of(x, some_id(4711)));
  say(thief, greeting_of(x, some_id(4711), selects_connection)); // as CAF's own do
  CHECK_FALSE(hear(thief, 100ms).closed);
  SUBCASE("as a client") {
    say(thief, greeting_of(x, honest.system.node(), selects_connection));
  }
  SUBCASE("as a server") {
    say(thief, basp_header(message_type::server_handshake, 8) + "12345678");
  }
  CHECK(hear(thief, 5s).closed);
  CHECK(honest.is_answered("still here"));
}

TEST_CASE("guarded connection: a greeting without a content ends its connection, and nothing else") {
  asked_process x;
  asking_process honest{x.port};
  auto first = visitor_of(x), later = visitor_of(x);
  say(first, basp_header(message_type::client_handshake, 0));
  CHECK(hear(first, 5s).closed);
  say(later, greeting_of(x, some_id(4712)) + basp_header(message_type::client_handshake, 0, selects_connection));
  CHECK(hear(later, 5s).closed);
  CHECK(honest.is_answered("still here"));
}

TEST_CASE(
  "guarded connection: a process that has lost its connection is let in again, as soon as the old one is gone") {
  asked_process x;
  const auto id = some_id(4713);
  for (int i = 0; i < 20; ++i) {
    auto again = visitor_of(x);
    say(again, greeting_of(x, id));
    CHECK_FALSE(hear(again, 20ms).closed);
    say(again, greeting_of(x, id, selects_connection));
    CHECK_FALSE(hear(again, 50ms).closed); // it counts, or this would have ended it
  }
}

// The route to the first connection is removed after what other processes have sent before: here this waits.
TEST_CASE("guarded connection: of several connections of one process, the one that it has not closed counts") {
  asked_process x;
  asking_process neighbour{x.port};
  std::promise<void> goes_on;
  auto stands = [&](caf::event_based_actor*, std::shared_future<void> end) -> caf::behavior {
    return {[end](caf::tick_atom) { end.wait(); }};
  };
  const auto id = some_id(4714);
  std::vector<open_socket> connections;
  for (int i = 0; i < 3; ++i)
    connections.push_back(visitor_of(x));
  say(connections[0], greeting_of(x, id));
  CHECK_FALSE(hear(connections[0], 50ms).closed);
  auto blocks = x.system.spawn(stands, goes_on.get_future().share());
  caf::anon_send(blocks, caf::tick_atom_v);                         // the only thread that runs actors
  caf::anon_send(neighbour.asked, std::string{"until it goes on"}); // waits for it before it is delivered
  CHECK_FALSE(hear(connections[1], 50ms).closed);
  connections[0] = {};
  say(connections[1], greeting_of(x, id));
  CHECK_FALSE(hear(connections[2], 50ms).closed);
  connections[1] = {};
  say(connections[2], greeting_of(x, id));
  CHECK_FALSE(hear(connections[2], 50ms).closed);
  goes_on.set_value();
  say(connections[2], basp_header(message_type::heartbeat, 0));
  CHECK_FALSE(hear(connections[2], 300ms).closed);
  say(connections[2], greeting_of(x, id, selects_connection));
  CHECK_FALSE(hear(connections[2], 100ms).closed); // it counts, or this would have closed it
  CHECK(neighbour.is_answered("as before"));
}

TEST_CASE("guarded connection: a process that connects twice finds the same actor, and keeps its first connection") {
  asked_process x;
  asking_process honest{x.port};
  for (int i = 0; i < 3; ++i) {
    auto again = connect_to(honest.system, {"127.0.0.1", x.port}, 5s);
    REQUIRE(again);
    CHECK(again->handle == caf::actor_cast<caf::strong_actor_ptr>(honest.asked));
    CHECK(honest.is_answered("as before"));
  }
}
