#include "runtime/trust/tls_session.hpp"

#include "tests/support/text_search.hpp"
#include "tests/support/trust_certificates.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

constexpr tls_limits small_buffers{.batch_bytes = 32u << 10};

/// Both ends, and the way between them.
struct tls_ends {
  tls_ends(const tls_identity_ptr& accepts, const tls_identity_ptr& connects,
           std::vector<std::string> hosts = {"host-a"}, const tls_limits& limits = small_buffers)
    : acceptor(accepts, limits), initiator(connects, std::move(hosts), limits) {}

  static void carry(tls_session& from, tls_session& to) {
    while (!from.unsent().empty()) {
      const auto room = to.room();
      const auto count = std::min(room.size(), from.unsent().size());
      if (count == 0)
        return;
      std::memcpy(room.data(), from.unsent().data(), count);
      from.sent(count);
      to.came(count);
    }
  }

  /// Until neither end has anything to say.
  void shake_hands() {
    for (int turn = 0; turn < 10; ++turn) {
      theirs = initiator.handshake();
      carry(initiator, acceptor);
      ours = acceptor.handshake();
      carry(acceptor, initiator);
    }
  }

  tls_session acceptor, initiator;
  tls_session::step ours = tls_session::step::more, theirs = tls_session::step::more;
};

std::vector<std::byte> numbered_bytes(size_t count) {
  std::vector<std::byte> result(count);
  for (size_t i = 0; i < count; ++i)
    result[i] = static_cast<std::byte>(i * 7 + i / 251);
  return result;
}

/// Sends all of it, and returns what comes out at the other end.
std::vector<std::byte> carried(tls_session& from, tls_session& to, std::span<const std::byte> bytes) {
  std::vector<std::byte> result;
  std::vector<std::byte> piece(10'000);
  while (!bytes.empty() || !from.unsent().empty() || to.has_more()) {
    if (from.unsent().empty() && !bytes.empty()) {
      const auto count = from.write(bytes);
      REQUIRE(count);
      bytes = bytes.subspan(*count);
    }
    tls_ends::carry(from, to);
    for (auto read = to.read(piece); read.how == tls_session::read_step::some; read = to.read(piece))
      result.insert(result.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(read.bytes));
  }
  return result;
}

} // namespace

TEST_CASE("tls session: two of one authority know each other, and share a key") {
  const trust_authority authority;
  tls_ends x{authority.identity(loopback_host()), authority.identity({"alice", role::observer, {}})};
  x.shake_hands();
  REQUIRE(x.ours == tls_session::step::done);
  REQUIRE(x.theirs == tls_session::step::done);
  CHECK(x.acceptor.peer().identity.name == "alice");
  CHECK(x.acceptor.peer().identity.as == role::observer);
  CHECK(x.initiator.peer().identity.name == "host-a");
  CHECK(x.initiator.peer().identity.as == role::member);
  CHECK(x.acceptor.peer().binding == x.initiator.peer().binding);
  CHECK(x.acceptor.peer().binding != session_key{});
  const auto bytes = numbered_bytes(300'000);
  CHECK(carried(x.initiator, x.acceptor, bytes) == bytes);
  CHECK(carried(x.acceptor, x.initiator, bytes) == bytes);
}

TEST_CASE("tls session: what is sent is not what goes over the connection") {
  const trust_authority authority;
  tls_ends x{authority.identity(loopback_host()), authority.identity(loopback_host())};
  x.shake_hands();
  const std::vector<std::byte> bytes(1000, std::byte{'s'});
  REQUIRE(x.initiator.write(bytes));
  CHECK(std::ranges::search(x.initiator.unsent(), std::vector<std::byte>(4, std::byte{'s'})).empty());
}

TEST_CASE("tls session: a byte that is changed on its way ends the connection") {
  const trust_authority authority;
  tls_ends x{authority.identity(loopback_host()), authority.identity(loopback_host())};
  x.shake_hands();
  REQUIRE(x.initiator.write(numbered_bytes(100)));
  auto room = x.acceptor.room();
  const auto count = x.initiator.unsent().size();
  std::memcpy(room.data(), x.initiator.unsent().data(), count);
  room[50] ^= std::byte{1};
  x.acceptor.came(count);
  std::vector<std::byte> piece(1000);
  CHECK(x.acceptor.read(piece).how == tls_session::read_step::failed);
  CHECK(x.acceptor.failure().why == greeting_refusal::tls_failed);
}

TEST_CASE("tls session: a sender changes its key after a number of bytes, and the bytes come as before") {
  const trust_authority authority;
  tls_ends x{authority.identity(loopback_host()),
             authority.identity(loopback_host()),
             {"host-a"},
             {.batch_bytes = 32u << 10, .key_bytes_max = 20'000}};
  x.shake_hands();
  const auto bytes = numbered_bytes(500'000);
  CHECK(carried(x.acceptor, x.initiator, bytes) == bytes);
  CHECK(carried(x.initiator, x.acceptor, bytes) == bytes);
}

TEST_CASE("tls session: each refusal is known at both ends") {
  const trust_authority authority, other{"another-authority"};
  const auto host = authority.identity(loopback_host());
  struct {
    const char* what;
    tls_identity_ptr accepts, connects;
    std::string to;
    greeting_refusal accepting, connecting;
    std::string accepting_text, connecting_text;
  } const cases[] = {
    {"other authority", host, other.identity(loopback_host("host-b")), "host-a", greeting_refusal::refuses_authority,
     greeting_refusal::other_authority, "refuses this process's certificate host-a, which another authority",
     "has the certificate of \"host-a\" that the authority of this process has not signed"},
    {"other host", host, authority.identity(loopback_host("host-b")), "host-c", greeting_refusal::refuses_host,
     greeting_refusal::other_host, "it connects by a name or address that this has not",
     "has the certificate of \"host-a\" for host-a, localhost, 127.0.0.1, ::1, and this process connects to host-c"},
    {"an observer that accepts", authority.identity({"alice", role::observer, {"host-a"}}), host, "host-a",
     greeting_refusal::tls_failed, greeting_refusal::other_role, "does not speak TLS", "is only for connecting"},
  };
  for (auto& each : cases) {
    CAPTURE(each.what);
    tls_ends x{each.accepts, each.connects, {each.to}};
    x.shake_hands();
    REQUIRE(x.theirs == tls_session::step::failed);
    CHECK(x.initiator.failure().why == each.connecting);
    CHECK_MESSAGE(contains(x.initiator.failure().text, each.connecting_text), x.initiator.failure().text);
    REQUIRE(x.ours == tls_session::step::failed);
    CHECK(x.acceptor.failure().why == each.accepting);
    CHECK_MESSAGE(contains(x.acceptor.failure().text, each.accepting_text), x.acceptor.failure().text);
  }
}

TEST_CASE("tls session: one of several names is enough, and an address is one") {
  const trust_authority authority;
  const auto host = authority.identity(loopback_host());
  for (const auto& hosts : {std::vector<std::string>{"nowhere", "host-a"}, {"127.0.0.1"}, {"::1"}}) {
    tls_ends x{host, host, hosts};
    x.shake_hands();
    CHECK(x.theirs == tls_session::step::done);
  }
}

TEST_CASE("tls session: a certificate that has expired meanwhile is refused by both ends") {
  const trust_authority authority;
  const auto host = authority.identity(loopback_host());
  const auto late = tls_identity::unchecked(authority.certify(loopback_host("late"), expired()),
                                            authority.own().certificate, "late.pem");
  REQUIRE(late);
  tls_ends accepts{*late, host, {"late"}};
  accepts.shake_hands();
  CHECK(accepts.initiator.failure().why == greeting_refusal::expired_certificate);
  CHECK_MESSAGE(contains(accepts.initiator.failure().text, "has the certificate of \"late\", which expired on 2"),
                accepts.initiator.failure().text);
  CHECK(accepts.acceptor.failure().why == greeting_refusal::refuses_expired);
  tls_ends connects{host, *late};
  connects.shake_hands();
  CHECK(connects.acceptor.failure().why == greeting_refusal::expired_certificate);
  std::vector<std::byte> piece(100);
  CHECK(connects.initiator.read(piece).how == tls_session::read_step::failed);
  CHECK(connects.initiator.failure().why == greeting_refusal::refuses_expired);
}

TEST_CASE("tls session: who accepts says why it refuses a certificate, after the other end is done") {
  const trust_authority authority;
  // A client whose own clock differs, or that does not look at its own certificate.
  const auto host = authority.identity(loopback_host());
  const trust_authority other{"another-authority"};
  // Signed by an authority that only the client takes for one of the cluster.
  const auto stranger = tls_identity::of(other.certify({"mallory", role::member, {}}),
                                         other.own().certificate + authority.own().certificate, "mallory");
  REQUIRE(stranger);
  tls_ends x{host, *stranger};
  x.shake_hands();
  CHECK(x.theirs == tls_session::step::done);
  REQUIRE(x.ours == tls_session::step::failed);
  CHECK(x.acceptor.failure().why == greeting_refusal::other_authority);
  CHECK_MESSAGE(contains(x.acceptor.failure().text, "\"mallory\""), x.acceptor.failure().text);
  std::vector<std::byte> piece(100);
  CHECK(x.initiator.read(piece).how == tls_session::read_step::failed);
  CHECK(x.initiator.failure().why == greeting_refusal::refuses_authority);
}

TEST_CASE("tls session: other bytes than those of TLS fail") {
  const trust_authority authority;
  tls_session x{authority.identity(loopback_host()), small_buffers};
  constexpr std::string_view bytes = "GET / HTTP/1.1\r\n\r\n";
  std::memcpy(x.room().data(), bytes.data(), bytes.size());
  x.came(bytes.size());
  CHECK(x.handshake() == tls_session::step::failed);
  CHECK(x.failure().why == greeting_refusal::tls_failed);
}
