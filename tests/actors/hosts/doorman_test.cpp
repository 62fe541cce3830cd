// Over real sockets, on loopback.
#include "actors/hosts/doorman.hpp"

#include "actors/configuration/configuration.hpp"
#include "actors/hosts/connections.hpp"
#include "actors/hosts/open_connection.hpp"
#include "actors/links/socket_greeting.hpp"

#include <caf/all.hpp>
#include <caf/io/broker.hpp>
#include <caf/io/middleman.hpp>
#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <thread>

using namespace ringmaster;
using namespace std::chrono_literals;

namespace {

struct door_system {
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

/// As CAF's protocol does: parts of a length that is known before.
struct house : door_system {
  static constexpr size_t header_bytes = 32;

  explicit house(const doorman_limits& limits) {
    auto listening = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof own;
    REQUIRE(::bind(listening, reinterpret_cast<sockaddr*>(&own), size) == 0);
    REQUIRE(::listen(listening, 8) == 0);
    REQUIRE(::getsockname(listening, reinterpret_cast<sockaddr*>(&own), &size) == 0);
    port = ::ntohs(own.sin_port);
    auto& backend = static_cast<caf::io::network::default_multiplexer&>(system.middleman().backend());
    auto keep = [this, &backend, listening](caf::io::broker* self, const doorman_limits& most) -> caf::behavior {
      self->add_doorman(make_doorman(backend, listening, most));
      return {[self](const caf::io::new_connection_msg& x) {
                self->configure_read(x.handle, caf::io::receive_policy::exactly(header_bytes));
              },
              [this, self](const caf::io::new_data_msg& x) {
                uint32_t next = header_bytes;
                if (x.buf.size() == header_bytes)
                  std::memcpy(&next, x.buf.data() + 4, sizeof next);
                self->configure_read(x.handle, caf::io::receive_policy::exactly(next));
                ++parts;
              },
              [this](const caf::io::connection_closed_msg&) { ++closed; }};
    };
    keeper = system.middleman().spawn_broker(keep, limits);
  }
  ~house() { caf::anon_send_exit(keeper, caf::exit_reason::user_shutdown); }

  open_socket visitor() const { return std::move(*open_connection({"127.0.0.1", port}, 5s)); }

  /// Whether that many parts come within a limit.
  bool has_heard(int wanted) const {
    for (auto until = std::chrono::steady_clock::now() + 5s; parts < wanted; std::this_thread::yield())
      if (std::chrono::steady_clock::now() > until)
        return false;
    return true;
  }

  caf::actor keeper;
  uint16_t port = 0;
  std::atomic<int> parts{0}, closed{0};
};

std::string header(char kind, uint32_t bytes_behind) {
  std::string result(house::header_bytes, '\0');
  result[0] = kind;
  std::memcpy(result.data() + 4, &bytes_behind, sizeof bytes_behind);
  return result;
}

void send(const open_socket& to, const std::string& bytes) {
  REQUIRE(::send(to.descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

/// Whether the other end closes it within that time; what it says until then is passed over.
bool is_closed(const open_socket& by, std::chrono::milliseconds limit) {
  std::array<char, 4096> heard;
  for (auto until = std::chrono::steady_clock::now() + limit;;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd waits{by.descriptor, POLLIN, 0};
    if (::poll(&waits, 1, std::max(static_cast<int>(left.count()), 0)) == 0)
      return false;
    if (::recv(by.descriptor, heard.data(), heard.size(), 0) <= 0)
      return true;
  }
}

constexpr char greeting = 1, message = 2; // of CAF's protocol

} // namespace

TEST_CASE("doorman: one that does not greet in time goes, no matter who does stays") {
  house x{{.greeting = 1s}}; // which a busy machine may take to greet
  auto polite = x.visitor();
  send(polite, header(greeting, 8) + "8 bytes.");
  REQUIRE(x.has_heard(2));
  auto silent = x.visitor(), halfway = x.visitor();
  send(halfway, header(greeting, 8));
  CHECK(is_closed(silent, 5s));
  CHECK(is_closed(halfway, 5s));
  CHECK_FALSE(is_closed(polite, 0ms));
  send(polite, header(message, 4) + "four");
  REQUIRE(x.has_heard(5));
  CHECK(x.closed == 2);
}

TEST_CASE("doorman: what is no greeting goes at once") {
  house x{{.greeting = 1h}};
  auto scanner = x.visitor(), hasty = x.visitor();
  send(scanner, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  send(hasty, header(message, 8));
  CHECK(is_closed(scanner, 5s));
  CHECK(is_closed(hasty, 5s));
  CHECK(x.parts == 0);
}

TEST_CASE("doorman: no room is made for a length that nothing has") {
  house x{{.greeting = 1h, .connection = {.greeting_bytes_max = 64, .message_bytes_max = 128}}};
  auto forger = x.visitor(), later = x.visitor(), honest = x.visitor();
  send(forger, header(greeting, 0x80000000));
  CHECK(is_closed(forger, 5s));
  send(later, header(greeting, 64) + std::string(64, 'x') + header(message, 129));
  CHECK(is_closed(later, 5s));
  send(honest, header(greeting, 64) + std::string(64, 'x') + header(message, 128) + std::string(128, 'x'));
  REQUIRE(x.has_heard(1 + 3 + 4));
  CHECK_FALSE(is_closed(honest, 0ms));
}

TEST_CASE("doorman: of too many that have not greeted the oldest goes, and no one who has") {
  house x{{.greeting = 1h, .strangers_max = 2}};
  auto polite = x.visitor();
  send(polite, header(greeting, 8) + "8 bytes.");
  REQUIRE(x.has_heard(2));
  auto first = x.visitor(), second = x.visitor(), third = x.visitor();
  CHECK(is_closed(first, 5s));
  CHECK_FALSE(is_closed(second, 0ms));
  CHECK_FALSE(is_closed(third, 0ms));
  CHECK_FALSE(is_closed(polite, 0ms));
}

TEST_CASE("doorman: CAF's own greeting is one, and a forged length ends a real door's connection") {
  door_system there, here;
  auto add = [](caf::event_based_actor*, uint64_t y) -> caf::behavior { return {[y](uint64_t x) { return x + y; }}; };
  auto whom = there.system.spawn(add, uint64_t{1}); // without arguments CAF binds a reference to none
  auto port = *listen_for(whom, there.system, "127.0.0.1", 0);
  auto forger = std::move(*open_connection({"127.0.0.1", port}, 5s));
  socket_greeting nothing_to_prove{[] { return caf::expected<credentials_ptr>{no_credentials()}; },
                                   listener_kind::coordinator, "it"};
  REQUIRE(greet(forger.descriptor, std::move(nothing_to_prove), [] { return caf::error{}; }));
  auto forged = header(greeting, 0);
  forged[4] = static_cast<char>(0x80); // in the network's order: 2 GiB
  send(forger, forged);
  CHECK(is_closed(forger, 5s));
  CHECK(connect_to(here.system, {"127.0.0.1", port}, 5s));
  caf::anon_send_exit(whom, caf::exit_reason::user_shutdown);
}
