// Bulk connections with certificates, over real sockets on loopback.
#include "actors/links/tls_channel.hpp"
#include "runtime/reduction/reducer.hpp"
#include "tests/actors/links/link_proxy.hpp"
#include "tests/actors/links/linked_processes.hpp"
#include "tests/support/text_search.hpp"
#include "tests/support/trust_certificates.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <sys/socket.h>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

constexpr protection both_protections[] = {protection::encrypted, protection::authenticated};

link_options certified(const tls_identity_ptr& own, protection how) {
  auto result = on_loopback();
  result.trust = std::make_shared<const credentials>(
    credentials{.secret = {}, .origin = "", .tls = own, .of_bulk = how});
  return result;
}

/// With each protection: a process that has `bytes` of the pattern, and the options of one that reads them.
void with_both_protections(uint64_t bytes, const std::function<void(linked_owner&, const link_options&)>& test) {
  const trust_authority authority;
  const auto host = authority.identity(loopback_host());
  for (auto how : both_protections) {
    linked_owner owner{bytes, certified(host, how)};
    owner.fill(bytes);
    test(owner, certified(host, how));
  }
}

/// What goes over a connection from A to B, and whether B gets it.
struct channel_pair {
  explicit channel_pair(protection how, const trust_authority& authority = trust_authority{})
    : accepts(authority.identity(loopback_host())), makes(authority.identity(loopback_host()), {"host-a"}) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    a = open_socket{ends[0]};
    b = open_socket{ends[1]};
    bool done = false;
    for (int turn = 0; turn < 10; ++turn) {
      const auto first = makes.handshake(b.descriptor), second = accepts.handshake(a.descriptor);
      done = first == tls_session::step::done && second == tls_session::step::done;
    }
    REQUIRE(done);
    REQUIRE(accepts.greeted(how));
    REQUIRE(makes.greeted(how));
  }

  /// What is sent at A, as the network sees it.
  std::vector<std::byte> on_the_way(std::span<const std::byte> bytes) {
    REQUIRE(accepts.send(a.descriptor, bytes) == static_cast<ssize_t>(bytes.size()));
    std::vector<std::byte> result(2 * bytes.size() + 1000);
    const auto count = ::recv(b.descriptor, result.data(), result.size(), MSG_DONTWAIT);
    REQUIRE(count > 0);
    result.resize(static_cast<size_t>(count));
    return result;
  }

  /// The same bytes go to B after all.
  void put(std::span<const std::byte> bytes) {
    REQUIRE(::send(a.descriptor, bytes.data(), bytes.size(), MSG_DONTWAIT) == static_cast<ssize_t>(bytes.size()));
  }

  ssize_t take(std::span<std::byte> to) { return makes.receive(b.descriptor, to); }

  tls_channel accepts, makes;
  open_socket a, b;
};

} // namespace

TEST_CASE("encrypted links: blocks come into their place and into reductions, large and small") {
  const trust_authority authority;
  const auto host = authority.identity(loopback_host());
  for (auto how : both_protections)
    for (bool checksums : {false, true}) {
      linked_owner owner{8 * mib, certified(host, how)};
      owner.fill(8 * mib);
      auto options = certified(host, how);
      options.checksums = checksums;
      options.connections = 2;
      linked_reader reader{options};
      uint32_t index = 0;
      for (uint64_t bytes : {uint64_t{1}, uint64_t{100}, mib / 4, mib / 4 + 7, 8 * mib}) {
        auto exposed = owner.expose(++index, 0, bytes);
        std::vector<std::byte> out(bytes);
        CHECK(reader.fetch(owner.hub->place(), index, {out.data()}, bytes) == link_fetch::outcome::done);
        CHECK(has_pattern(out));
      }
      CHECK(reader.hub->counts().connections_made == 2);
    }
}

TEST_CASE("encrypted links: who waits for the socket misses nothing that was decrypted") {
  with_both_protections(1 * mib, [](linked_owner& owner, const link_options& guest) {
    linked_reader reader{guest};
    std::vector<std::shared_ptr<link_exposure>> exposed;
    std::vector<std::vector<std::byte>> out(200, std::vector<std::byte>(1000));
    for (uint32_t i = 0; i < out.size(); ++i)
      exposed.push_back(owner.expose(i, 1000 * i, 1000));
    for (uint32_t i = 0; i < out.size(); ++i)
      reader.begin(owner.hub->place(), i, {out[i].data()}, 1000);
    REQUIRE(reader.await_ends(out.size()));
    for (uint32_t i = 0; i < out.size(); ++i)
      CHECK(has_pattern(out[i], 1000 * i));
  });
}

TEST_CASE("encrypted links: bytes that are changed on their way are not taken, and come again") {
  with_both_protections(4 * mib, [](linked_owner& owner, const link_options& guest) {
    auto exposed = owner.expose(1, 0, 4 * mib);
    link_proxy proxy{owner.hub->place().endpoints.front(), {{.damage_byte = 1'000'000}, {.cut_after = 2'000'000}}};
    linked_reader reader{guest};
    std::vector<std::byte> out(4 * mib);
    CHECK(reader.fetch(by_way_of(proxy, owner.hub->place()), 1, {out.data()}, out.size()) == link_fetch::outcome::done);
    CHECK(has_pattern(out));
    CHECK(proxy.connections() == 3);
    CHECK(reader.hub->counts().connections_lost == 2);
  });
}

TEST_CASE("encrypted links: a memory file that was cut ends the fetch, and no process") {
  with_both_protections(4 * mib, [](linked_owner& owner, const link_options& guest) {
    auto exposed = owner.expose(1, 0, 4 * mib);
    std::filesystem::resize_file(owner.memory->file(), 0);
    linked_reader reader{guest};
    std::vector<std::byte> out(4 * mib);
    CHECK(reader.fetch(owner.hub->place(), 1, {out.data()}, out.size()) == link_fetch::outcome::damaged);
  });
}

TEST_CASE("encrypted links: a process without the right certificate fetches nothing") {
  const trust_authority authority, other{"another-authority"};
  const auto host = authority.identity(loopback_host());
  linked_owner owner{1 * mib, certified(host, protection::encrypted)};
  owner.fill(64);
  auto exposed = owner.expose(1, 0, 64);
  std::vector<std::byte> out(64);
  struct {
    link_options guest;
    std::string says;
  } const cases[] = {
    {certified(other.identity(loopback_host("host-x")), protection::encrypted),
     "that the authority of this process has not signed"},
    {on_loopback(), "requires TLS with certificates on both sides"},
    {certified(host, protection::authenticated), "has another value of trust.bulk"},
  };
  uint64_t refused = 0;
  for (auto& each : cases) {
    CAPTURE(each.says);
    linked_reader reader{each.guest};
    CHECK(reader.fetch(owner.hub->place(), 1, {out.data()}, 64) == link_fetch::outcome::unreachable);
    CHECK_MESSAGE(contains(render(reader.last->why()), each.says), render(reader.last->why()));
    ++refused;
    CHECK(await_true([&] { return owner.hub->counts().strangers_refused == refused; }));
  }
}

TEST_CASE("encrypted links: a process is known by the name in its certificate where its address is not in there") {
  const trust_authority authority;
  const auto named = authority.identity({"host-a", role::member, {"host-a"}});
  linked_owner owner{1 * mib, certified(named, protection::encrypted)};
  owner.fill(64);
  auto exposed = owner.expose(1, 0, 64);
  std::vector<std::byte> out(64);
  CHECK(owner.hub->place().name == "host-a");
  linked_reader reader{certified(named, protection::encrypted)};
  CHECK(reader.fetch(owner.hub->place(), 1, {out.data()}, 64) == link_fetch::outcome::done);
  auto elsewhere = owner.hub->place();
  elsewhere.name = "host-b"; // at the address of another host
  linked_reader deceived{certified(named, protection::encrypted)};
  CHECK(deceived.fetch(elsewhere, 1, {out.data()}, 64) == link_fetch::outcome::unreachable);
  CHECK_MESSAGE(contains(render(deceived.last->why()), "for host-a, and this process connects to 127.0.0.1 or host-b"),
                render(deceived.last->why()));
}

TEST_CASE("tls channel: authenticated bytes can be read on the way, and encrypted ones cannot") {
  const std::vector<std::byte> bytes(5000, std::byte{'r'}), part(16, std::byte{'r'});
  std::vector<std::byte> out(bytes.size());
  for (auto how : both_protections) {
    channel_pair x{how};
    const auto seen = x.on_the_way(bytes);
    CHECK(std::ranges::search(seen, part).empty() == (how == protection::encrypted));
    x.put(seen);
    CHECK(x.take(out) == static_cast<ssize_t>(out.size()));
    CHECK(out == bytes);
  }
}

TEST_CASE("tls channel: each byte on the way counts, and a record counts once") {
  const std::vector<std::byte> bytes(100, std::byte{'r'});
  std::vector<std::byte> out(bytes.size());
  const trust_authority authority;
  for (auto how : both_protections)
    for (const size_t at : {size_t{0}, size_t{3}, size_t{4}, size_t{19}, size_t{20}, size_t{60}, size_t{119}}) {
      channel_pair x{how, authority};
      auto seen = x.on_the_way(bytes);
      seen[std::min(at, seen.size() - 1)] ^= std::byte{1};
      for (int i = 0; i < 5; ++i)
        x.put(seen); // more follows, where the length has grown
      const auto got = x.take(out);
      CHECK(got == -1);
      CHECK(errno == EPROTO);
    }
  for (auto how : both_protections) {
    channel_pair x{how, authority};
    const auto seen = x.on_the_way(bytes);
    x.put(seen);
    x.put(seen);
    CHECK(x.take(out) == static_cast<ssize_t>(out.size()));
    CHECK(x.take(out) == -1);
    CHECK(errno == EPROTO);
  }
}
