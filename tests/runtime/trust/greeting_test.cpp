#include "runtime/trust/greeting.hpp"

#include "messages/errc.hpp"
#include "tests/support/text_search.hpp"

#include "tests/support/trust_certificates.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::test;
using ringmaster::test::contains;

namespace {

using wire_bytes = std::vector<std::byte>;

credentials_ptr holder_of(char letter) {
  return credentials::of({role::member, {}, *shared_secret::of(std::string(32, letter), "a test's secret")},
                         std::string{"that of "} + letter);
}

greeting_initiator::finder given(const credentials_ptr& own) {
  return [own] { return caf::expected<credentials_ptr>{own}; };
}

/// Both ends of a connection, and what goes over it.
struct greeting_ends {
  greeting_ends(const credentials_ptr& ours, const credentials_ptr& theirs,
                listener_kind listens = listener_kind::coordinator, listener_kind wanted = listener_kind::coordinator)
    : acceptor(ours, listens), initiator(given(theirs), wanted, "host:7077") {}

  /// Runs the greeting. `change` may alter each of the three messages.
  void run(const std::function<void(int, wire_bytes&)>& change = [](int, wire_bytes&) {}) {
    const auto sent = [&](int number, std::span<const std::byte> bytes) {
      wire_bytes result{bytes.begin(), bytes.end()};
      change(number, result);
      return result;
    };
    auto first = initiator.take(sent(0, acceptor.challenge()));
    if (auto* failed = std::get_if<greeting_initiator::failed>(&first)) {
      problem = failed->why;
      if (!failed->last_words.empty())
        accept(failed->last_words);
      return;
    }
    if (std::holds_alternative<greeting_initiator::secure>(first)) { // the handshake, which is tested elsewhere
      acceptor.secured({certified_initiator, {std::byte{7}}});
      first = initiator.secured({certified_acceptor, {std::byte{7}}});
    }
    const auto verdict = accept(sent(1, std::get<greeting_initiator::answer>(first).bytes));
    if (!verdict)
      return;
    auto last = initiator.take(sent(2, *verdict));
    if (auto* failed = std::get_if<greeting_initiator::failed>(&last))
      problem = failed->why;
    else
      initiated = std::get<greeting_initiator::admitted>(last).with;
  }

  std::optional<wire_bytes> accept(std::span<const std::byte> answer) {
    auto step = acceptor.take(answer);
    if (auto* admitted = std::get_if<greeting_acceptor::admitted>(&step)) {
      accepted = admitted->with;
      return wire_bytes{admitted->verdict.begin(), admitted->verdict.end()};
    }
    if (auto* refused = std::get_if<greeting_acceptor::refused>(&step)) {
      why = refused->why;
      return wire_bytes{refused->verdict.begin(), refused->verdict.end()};
    }
    return std::nullopt; // waits for more
  }

  greeting_acceptor acceptor;
  greeting_initiator initiator;
  peer_identity certified_initiator, certified_acceptor{role::member, "host-a"}; ///< By TLS, if there is TLS.
  std::optional<session> accepted, initiated;
  std::optional<greeting_refusal> why;
  caf::error problem;
};

std::optional<greeting_refusal> refusal_of(std::string_view first_bytes, const credentials_ptr& own = holder_of('a')) {
  greeting_acceptor door{own, listener_kind::coordinator};
  auto step = door.take(std::as_bytes(std::span{first_bytes}));
  auto* refused = std::get_if<greeting_acceptor::refused>(&step);
  return refused == nullptr ? std::nullopt : std::optional{refused->why};
}

} // namespace

TEST_CASE("greeting: two that know the secret admit each other, and have a key that no other connection has") {
  greeting_ends one{holder_of('a'), holder_of('a')}, other{holder_of('a'), holder_of('a')};
  one.run();
  other.run();
  REQUIRE(one.accepted);
  REQUIRE(one.initiated);
  REQUIRE(other.accepted);
  CHECK(one.accepted->key == one.initiated->key);
  CHECK(one.accepted->key != session_key{});
  CHECK(one.accepted->key != other.accepted->key);
  CHECK(one.accepted->peer == peer_identity{role::member});
  CHECK(one.initiated->peer == peer_identity{role::coordinator});
}

TEST_CASE("greeting: without a secret at both ends they admit each other, and neither is more than a stranger") {
  greeting_ends x{no_credentials(), no_credentials()};
  x.run();
  REQUIRE(x.accepted);
  REQUIRE(x.initiated);
  CHECK(x.accepted->peer.as == role::stranger);
  CHECK(x.accepted->key == session_key{});
}

TEST_CASE("greeting: the secret is in none of its messages") {
  greeting_ends x{holder_of('s'), holder_of('s')};
  x.run([](int, wire_bytes& bytes) { CHECK(std::ranges::search(bytes, wire_bytes(4, std::byte{'s'})).empty()); });
  CHECK(x.accepted);
}

TEST_CASE("greeting: every byte counts, and a wrong one admits neither end to the other") {
  constexpr size_t sizes[] = {challenge_bytes, answer_bytes, verdict_bytes};
  for (int message = 0; message < 3; ++message)
    for (size_t at = 0; at < sizes[message]; ++at)
      for (const auto bit : {std::byte{1}, std::byte{0x80}}) {
        CAPTURE(message);
        CAPTURE(at);
        greeting_ends x{holder_of('a'), holder_of('a')};
        x.run([&](int number, wire_bytes& bytes) {
          if (number == message)
            bytes[at] ^= bit;
        });
        const bool is_unused = message == 2 && at > 0 && at < 8;
        CHECK(x.initiated.has_value() == is_unused);
        CHECK((message == 2 || !x.accepted)); // whose last word the acceptor has said before
      }
}

TEST_CASE("greeting: it may come byte by byte, and none that follows it is read") {
  greeting_ends x{holder_of('a'), holder_of('a')};
  const auto feed = [](auto& end, std::span<const std::byte> bytes) {
    for (size_t i = 0;; ++i) {
      REQUIRE(end.wanted() >= bytes.size() - i);
      auto step = end.take(bytes.subspan(i, 1));
      if (step.index() != 0 || i + 1 == bytes.size())
        return step;
    }
  };
  auto answer = feed(x.initiator, x.acceptor.challenge());
  REQUIRE(std::holds_alternative<greeting_initiator::answer>(answer));
  CHECK(x.acceptor.wanted() == answer_bytes);
  CHECK(x.initiator.wanted() == verdict_bytes);
  auto welcome = feed(x.acceptor, std::get<greeting_initiator::answer>(answer).bytes);
  REQUIRE(std::holds_alternative<greeting_acceptor::admitted>(welcome));
  CHECK(x.acceptor.wanted() == 0);
  CHECK(std::holds_alternative<greeting_initiator::admitted>(
    feed(x.initiator, std::get<greeting_acceptor::admitted>(welcome).verdict)));
}

TEST_CASE("greeting: cut short at any byte, it admits nothing") {
  greeting_ends whole{holder_of('a'), holder_of('a')};
  wire_bytes answer;
  whole.run([&](int number, wire_bytes& bytes) {
    if (number == 1)
      answer = bytes;
  });
  for (size_t size = 0; size < answer_bytes; ++size) {
    greeting_acceptor again{holder_of('a'), listener_kind::coordinator};
    CHECK(std::holds_alternative<greeting_acceptor::more>(again.take(std::span{answer}.first(size))));
  }
  CHECK(code_of(whole.initiator.cut_short()) == errc::unreachable);
}

TEST_CASE("greeting: another secret, and none, are refused at both ends with what to do") {
  greeting_ends wrong{holder_of('a'), holder_of('b')};
  wrong.run();
  CHECK(wrong.why == greeting_refusal::wrong_secret);
  CHECK_FALSE(wrong.accepted);
  CHECK(code_of(wrong.problem) == errc::unauthenticated);
  CHECK(contains(render(wrong.problem), "host:7077 has another secret than this process, which has that of b"));

  greeting_ends none{holder_of('a'), no_credentials()};
  none.run();
  CHECK(none.why == greeting_refusal::no_secret);
  CHECK(contains(render(none.problem), "host:7077 requires the secret of its cluster, and this process runs with "
                                       "--insecure"));

  greeting_ends open{no_credentials(), holder_of('a')};
  open.run();
  CHECK(open.why == greeting_refusal::not_required);
  CHECK(contains(render(open.problem), "requires no secret (trust.insecure), so it may be any process"));
}

TEST_CASE("greeting: a process that finds no secret says why, and the other end knows") {
  greeting_acceptor door{holder_of('a'), listener_kind::coordinator};
  greeting_initiator guest{[]() -> caf::expected<credentials_ptr> { return make_error(errc::io_error, "no file X"); },
                           listener_kind::coordinator, "host:1"};
  auto step = guest.take(door.challenge());
  auto* failed = std::get_if<greeting_initiator::failed>(&step);
  REQUIRE(failed != nullptr);
  CHECK(render(failed->why) == "host:1 requires the secret of its cluster, and this process has none: no file X");
  auto heard = door.take(failed->last_words);
  REQUIRE(std::holds_alternative<greeting_acceptor::refused>(heard));
  CHECK(std::get<greeting_acceptor::refused>(heard).why == greeting_refusal::no_secret);
}

TEST_CASE("greeting: one that was recorded is refused") {
  greeting_ends first{holder_of('a'), holder_of('a')};
  wire_bytes challenge, answer, verdict;
  first.run([&](int number, wire_bytes& bytes) { (number == 0 ? challenge : number == 1 ? answer : verdict) = bytes; });
  REQUIRE(first.accepted);
  greeting_ends later{holder_of('a'), holder_of('a')};
  later.accept(answer);
  CHECK(later.why == greeting_refusal::wrong_secret);
  // A recorded acceptor has no proof for the new nonce of the initiator.
  auto again = later.initiator.take(challenge);
  REQUIRE(std::holds_alternative<greeting_initiator::answer>(again));
  auto end = later.initiator.take(verdict);
  REQUIRE(std::holds_alternative<greeting_initiator::failed>(end));
  CHECK(contains(render(std::get<greeting_initiator::failed>(end).why), "does not know the secret that this process "
                                                                        "has"));
}

TEST_CASE("greeting: one that is reflected is refused, also by way of a second connection") {
  greeting_acceptor door{holder_of('a'), listener_kind::coordinator};
  auto own = door.take(door.challenge());
  REQUIRE(std::holds_alternative<greeting_acceptor::refused>(own));
  CHECK(std::get<greeting_acceptor::refused>(own).why == greeting_refusal::reflected);
  // One without the secret answers with what it has got from the same process as an acceptor, for its own challenge.
  greeting_ends victim{holder_of('a'), holder_of('a')};
  auto answered = victim.initiator.take(victim.acceptor.challenge());
  const auto proof = std::get<greeting_initiator::answer>(answered).bytes;
  wire_bytes verdict(verdict_bytes);
  verdict[0] = std::byte{1};
  std::copy(proof.end() - 32, proof.end(), verdict.begin() + 8); // its own proof as the acceptor's
  CHECK(std::holds_alternative<greeting_initiator::failed>(victim.initiator.take(verdict)));
}

TEST_CASE("greeting: an answer to one port admits to no other") {
  for (const auto listens : {listener_kind::coordinator, listener_kind::node, listener_kind::bulk_link})
    for (const auto wanted : {listener_kind::coordinator, listener_kind::node, listener_kind::bulk_link}) {
      greeting_ends x{holder_of('a'), holder_of('a'), listens, wanted};
      x.run();
      CHECK(x.accepted.has_value() == (listens == wanted));
      if (listens != wanted)
        CHECK(contains(render(x.problem),
                       fmt::format("host:7077 answers, but it is no ringmaster {}", name_of(wanted))));
    }
  // Also where the initiator is made to believe that the port is another one.
  greeting_ends x{holder_of('a'), holder_of('a'), listener_kind::coordinator, listener_kind::node};
  x.run([](int number, wire_bytes& bytes) {
    if (number == 0)
      bytes[14] = static_cast<std::byte>(listener_kind::node);
    if (number == 1)
      bytes[14] = static_cast<std::byte>(listener_kind::coordinator);
  });
  CHECK(x.why == greeting_refusal::wrong_secret);
}

namespace {

credentials_ptr holder_of_role(char letter, role as, const std::string& name = {}) {
  const auto cluster = *shared_secret::of(std::string(32, letter), "a test's secret");
  return credentials::of({as, name, derive_secret(cluster, as, name)}, "that of a role");
}

} // namespace

TEST_CASE("greeting: a process with the secret of a role is known by it and its name") {
  for (const auto as : {role::client, role::operating, role::observer, role::node, role::rank}) {
    const std::string name = as == role::node || as == role::rank ? "" : "alice";
    greeting_ends x{holder_of('a'), holder_of_role('a', as, name)};
    x.run();
    REQUIRE(x.accepted);
    REQUIRE(x.initiated);
    CHECK(x.accepted->peer == peer_identity{as, name});
    CHECK(x.initiated->peer == peer_identity{role::coordinator});
    CHECK(x.accepted->key == x.initiated->key);
    greeting_ends other{holder_of('b'), holder_of_role('a', as, name)};
    other.run();
    CHECK(other.why == greeting_refusal::wrong_secret);
  }
}

TEST_CASE("greeting: no one climbs to another role or name by a claim") {
  constexpr size_t role_at = 15, name_at = 48;
  for (const auto claimed : {role::member, role::coordinator, role::node, role::operating, role::client}) {
    greeting_ends x{holder_of('a'), holder_of_role('a', role::observer)};
    x.run([&](int number, wire_bytes& bytes) {
      if (number == 1)
        bytes[role_at] = static_cast<std::byte>(claimed) << 4;
    });
    CHECK_FALSE(x.accepted);
    CHECK(x.why == greeting_refusal::wrong_secret);
  }
  greeting_ends renamed{holder_of('a'), holder_of_role('a', role::client, "bob")};
  renamed.run([&](int number, wire_bytes& bytes) {
    if (number == 1)
      bytes[name_at] = std::byte{'r'};
  });
  CHECK(renamed.why == greeting_refusal::wrong_secret);
  for (const auto unknown : {std::byte{0}, std::byte{0x80}, std::byte{0xF0}}) {
    greeting_ends x{holder_of('a'), holder_of_role('a', role::observer)};
    x.run([&](int number, wire_bytes& bytes) {
      if (number == 1)
        bytes[role_at] = unknown;
    });
    CHECK_FALSE(x.accepted);
  }
}

TEST_CASE("greeting: clients connect to the coordinator only") {
  for (const auto as : {role::client, role::operating, role::observer, role::node, role::rank})
    for (const auto kind : {listener_kind::node, listener_kind::bulk_link}) {
      greeting_ends x{holder_of('a'), holder_of_role('a', as), kind, kind};
      x.run();
      const bool is_client = as != role::node && as != role::rank;
      CHECK(x.accepted.has_value() != is_client);
      if (is_client)
        CHECK(x.why == greeting_refusal::may_not_connect);
    }
}

TEST_CASE("greeting: a certificate and a secret together allow what both allow") {
  const trust_authority authority;
  const auto with = [&](const credentials_ptr& own, const certificate_subject& whose) {
    auto result = *own;
    result.tls = authority.identity(whose);
    return std::make_shared<const credentials>(std::move(result));
  };
  const auto listens = with(holder_of('a'), loopback_host());
  struct combination {
    role certified, secret;
    std::optional<role> both; ///< None: they are refused.
  };
  for (auto [certified, secret, both] : {combination{role::member, role::member, role::member},
                                         {role::member, role::observer, role::observer},
                                         {role::observer, role::member, role::observer},
                                         {role::client, role::client, role::client},
                                         {role::client, role::operating, std::nullopt}}) {
    CAPTURE(name_of(certified));
    CAPTURE(name_of(secret));
    const auto own = secret == role::member ? holder_of('a') : holder_of_role('a', secret, "alice");
    greeting_ends x{listens, with(own, {"alice", certified, {}})};
    x.certified_initiator = {certified, "alice"};
    x.run();
    REQUIRE(x.accepted.has_value() == both.has_value());
    if (both) {
      CHECK(x.accepted->peer == peer_identity{*both, "alice"});
      CHECK(x.initiated->peer == peer_identity{role::coordinator, "host-a"});
      CHECK(x.accepted->key == x.initiated->key);
    } else {
      CHECK(x.why == greeting_refusal::two_roles);
    }
  }
}

TEST_CASE("greeting: nodes with the secret of nodes admit each other and the cluster's own, and no one else") {
  const auto node = holder_of_role('a', role::node);
  const auto kind = listener_kind::node;
  greeting_ends same{node, node, kind, kind};
  same.run();
  REQUIRE(same.accepted);
  CHECK(same.accepted->peer == peer_identity{role::node});
  CHECK(same.initiated->peer == peer_identity{role::node});

  greeting_ends whole{node, holder_of('a'), kind, kind}; // which proves by the node's secret, and is known as such
  whole.run();
  REQUIRE(whole.accepted);
  CHECK(whole.accepted->peer == peer_identity{role::node});
  CHECK(whole.initiated->peer == peer_identity{role::node});
  greeting_ends stranger{node, holder_of('b'), kind, kind};
  stranger.run();
  CHECK_FALSE(stranger.accepted);

  greeting_ends rank{node, holder_of_role('a', role::rank), kind, kind};
  rank.run();
  CHECK_FALSE(rank.accepted);
  CHECK(code_of(rank.problem) == errc::unauthenticated);
  CHECK(contains(render(rank.problem), "has the secret of a node, and cannot check that of a rank"));
}

TEST_CASE("greeting: other bytes are refused by its first bytes, and named") {
  CHECK(refusal_of("GET / HTTP/1.1\r\nHost: x\r\n\r\n") == greeting_refusal::http);
  CHECK(refusal_of("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") == greeting_refusal::http);
  CHECK(refusal_of(std::string_view{"\x16\x03\x01\x02\x00\x01\x00\x01", 8}) == greeting_refusal::tls);
  CHECK(refusal_of(std::string_view{"\x01\0\0\0\0\0\0\x1e", 8}) == greeting_refusal::older_version); // CAF's greeting
  CHECK(refusal_of("ringlink\x01") == greeting_refusal::older_version);
  CHECK(refusal_of("SSH-2.0-OpenSSH_9.2") == greeting_refusal::other_bytes);
  CHECK(refusal_of("ring-ans\x02\0\0\0xxxx") == std::nullopt); // literals end at a zero
  CHECK(refusal_of(std::string_view{"ring-ans\x03\0\0\0\1\1\0\0", 16}) == greeting_refusal::other_greeting);
  for (auto start : {"G", "ri", "\x16"})
    CHECK(refusal_of(start) == std::nullopt); // more will show
}

TEST_CASE("greeting: an initiator names what answers in place of a process of this version") {
  const auto problem_of = [](std::string_view first_bytes) {
    greeting_initiator x{given(holder_of('a')), listener_kind::coordinator, "host:9"};
    auto step = x.take(std::as_bytes(std::span{first_bytes}));
    auto* failed = std::get_if<greeting_initiator::failed>(&step);
    return failed == nullptr ? caf::error{} : failed->why;
  };
  CHECK(code_of(problem_of(std::string_view{"\0\0\0\0\0\0\1\0\0\0\0\0", 12})) == errc::wrong_version);
  CHECK(code_of(problem_of("SSH-2.0-OpenSSH_9.2")) == errc::not_ringmaster);
  std::string later{"ring-ask\x03\0\0\0\1\0\0\0", 16};
  later.resize(challenge_bytes);
  CHECK(code_of(problem_of(later)) == errc::wrong_version);
}

TEST_CASE("greeting: a port that has too much to do is tried again") {
  greeting_initiator x{given(holder_of('a')), listener_kind::coordinator, "host:9"};
  greeting_acceptor door{holder_of('a'), listener_kind::coordinator};
  REQUIRE(std::holds_alternative<greeting_initiator::answer>(x.take(door.challenge())));
  auto end = x.take(greeting_acceptor::verdict_of(greeting_refusal::too_many));
  REQUIRE(std::holds_alternative<greeting_initiator::failed>(end));
  CHECK(code_of(std::get<greeting_initiator::failed>(end).why) == errc::unreachable);
}
