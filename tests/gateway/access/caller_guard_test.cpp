#include "gateway/access/caller_guard.hpp"

#include "actors/links/sockets.hpp"
#include "messages/errc.hpp"
#include "tests/support/processes/launched_program.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

using namespace ringmaster;
using namespace ringmaster::gateway;
using namespace ringmaster::launch;
using namespace ringmaster::test;

namespace {

constexpr uid_t nobody = 65534;
const endpoint at_gateway{"127.0.0.1", 50051};

/// Every connection is this user's.
user_finder always(uid_t user) {
  return [=](const local_connection&) { return caf::expected<uid_t>{user}; };
}

errc judged(const caller_rules& rules, const std::string& peer, const std::string& authorization,
            const user_finder& find = always(::geteuid())) {
  return code_of(caller_guard{rules, at_gateway, find}.check(peer, authorization));
}

/// A socket that listens on a free port of 127.0.0.1.
struct listening_socket {
  listening_socket() : socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof here;
    REQUIRE(::bind(socket.descriptor, reinterpret_cast<sockaddr*>(&here), size) == 0);
    REQUIRE(::listen(socket.descriptor, 1) == 0);
    REQUIRE(::getsockname(socket.descriptor, reinterpret_cast<sockaddr*>(&here), &size) == 0);
    port = ntohs(here.sin_port);
  }

  /// The next connection, as its initiator's end has it; it stays open with the result.
  std::pair<open_socket, local_connection> accept() const {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    open_socket made{::accept(socket.descriptor, reinterpret_cast<sockaddr*>(&peer), &size)};
    REQUIRE(made.descriptor >= 0);
    return {std::move(made), local_connection{"127.0.0.1", ntohs(peer.sin_port), "127.0.0.1", port}};
  }

  open_socket socket;
  uint16_t port = 0;
};

} // namespace

TEST_CASE("caller guard: without other rules processes of the same user and of root on this host may call") {
  const caller_rules rules;
  for (const auto* peer : {"ipv4:127.0.0.1:50712", "ipv6:%5B::1%5D:50712", "ipv6:[::1]:50712"}) {
    CAPTURE(peer);
    CHECK(judged(rules, peer, "") == errc::ok);
    CHECK(judged(rules, peer, "", always(0)) == errc::ok);
    CHECK(judged(rules, peer, "", always(nobody)) == errc::permission_denied);
  }
  for (const auto* peer : {"ipv4:10.0.0.2:50712", "ipv6:%5Bfe80::1%5D:50712", "unix:", "", "nonsense"}) {
    CAPTURE(peer);
    CHECK(judged(rules, peer, "") == errc::permission_denied);
  }
  const auto silent = [](const local_connection&) -> caf::expected<uid_t> {
    return make_error(errc::io_error, "the kernel does not say");
  };
  CHECK(judged(rules, "ipv4:127.0.0.1:50712", "", silent) == errc::permission_denied);
}

TEST_CASE("caller guard: a token admits from everywhere, and is then needed by all") {
  caller_rules rules;
  rules.token = *access_token::of("0123456789abcdef", "the test's token");
  for (const auto* peer : {"ipv4:127.0.0.1:50712", "ipv4:10.0.0.2:50712"}) {
    CAPTURE(peer);
    CHECK(judged(rules, peer, "Bearer 0123456789abcdef") == errc::ok);
    CHECK(judged(rules, peer, "bearer 0123456789abcdef") == errc::ok);
    for (const auto* wrong : {"", "0123456789abcdef", "Bearer 0123456789abcdeg", "Bearer ", "Basic 0123456789abcdef"}) {
      CAPTURE(wrong);
      CHECK(judged(rules, peer, wrong) == errc::unauthenticated);
    }
  }
}

TEST_CASE("caller guard: certificates, which TLS has checked, and an open gateway admit all that connect") {
  caller_rules certified, open;
  certified.has_certificates = open.is_open = true;
  for (const auto* rules : {&certified, &open})
    CHECK(judged(*rules, "ipv4:10.0.0.2:50712", "", always(nobody)) == errc::ok);
}

TEST_CASE("caller guard: an address that other hosts reach needs rules, and a token there needs TLS") {
  caller_rules none, token, certified, open;
  token.token = *access_token::of("0123456789abcdef", "the test's token");
  certified.has_certificates = open.is_open = true;
  for (const auto* rules : {&none, &token, &certified, &open})
    for (const auto* host : {"127.0.0.1", "localhost", "::1"})
      CHECK_FALSE(check_reach(*rules, false, host));
  for (const auto* host : {"0.0.0.0", "::", "10.0.0.1", "head"}) {
    CAPTURE(host);
    CHECK(contains(render(check_reach(none, true, host)), "--open-grpc"));
    CHECK(contains(render(check_reach(token, false, host)), "in clear"));
    CHECK_FALSE(check_reach(token, true, host));
    CHECK_FALSE(check_reach(certified, true, host));
    CHECK_FALSE(check_reach(open, false, host));
  }
}

TEST_CASE("peer user: whose a connection is, of this user and of another one") {
  const listening_socket server;
  const auto there = *numeric_address({"127.0.0.1", server.port});
  const open_socket mine{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  REQUIRE(::connect(mine.descriptor, there.get(), there.size) == 0);
  auto [ours, connection] = server.accept();
  const auto user = user_of(connection);
  REQUIRE_MESSAGE(user, render(user.error()));
  CHECK(*user == ::geteuid());
  auto unknown = connection;
  unknown.from = "127.0.0.7";
  CHECK(code_of(user_of(unknown).error()) == errc::unreachable);
  CHECK(code_of(user_of({"localhost", 1, "127.0.0.1", 2}).error()) == errc::invalid_argument);
  if (::geteuid() != 0)
    return; // which alone can be another user
  const launched_program other{{"setpriv", "--reuid", std::to_string(nobody), "--clear-groups", "bash", "-c",
                                "exec 3<>/dev/tcp/127.0.0.1/" + std::to_string(server.port) + "; read -u 3"}};
  auto [theirs, of_nobody] = server.accept();
  const auto stranger = user_of(of_nobody);
  REQUIRE_MESSAGE(stranger, render(stranger.error()));
  CHECK(*stranger == nobody);
}
