// Over real sockets, on loopback: connections of CAF's protocol with TLS, and everything that may be wrong with them.
#include "messages/errc.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"
#include "tests/support/trust_certificates.hpp"
#include "tests/support/trusting_process.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <array>
#include <poll.h>
#include <sstream>
#include <string>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

/// The log of this process while one lives.
class heard_log {
public:
  heard_log() : before_(spdlog::default_logger()) {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", std::move(sink)));
  }
  ~heard_log() { spdlog::set_default_logger(before_); }
  heard_log(const heard_log&) = delete;
  heard_log& operator=(const heard_log&) = delete;

  std::string text() {
    spdlog::default_logger()->flush();
    return text_.str();
  }

private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

struct certified_hosts {
  trust_settings of(const certificate_subject& whom, const certificate_period& period = valid_now()) {
    return {
      .tls = authority.write(dir.path(), fmt::format("{}-{}", whom.name, ++count), authority.certify(whom, period)),
      .insecure = false};
  }

  temporary_directory dir;
  const variables_of_trust variables{dir.path()};
  const trust_authority authority;
  int count = 0;
};

/// What is refused, and what the door's log says.
struct refused_visit {
  std::string error, log;
};

refused_visit visit(const trust_settings& door, const trust_settings& guest, const std::string& host = "127.0.0.1") {
  heard_log log;
  refused_visit result;
  {
    const door_of_process open{door};
    const auto found = open.enter_as(guest, host);
    REQUIRE_FALSE(found);
    CHECK(code_of(found.error()) == errc::unauthenticated);
    result.error = render(found.error());
  }
  result.log = log.text();
  return result;
}

/// What the actor of another process answers to a process that comes with these.
caf::expected<uint64_t> sum_of(const trust_settings& guest, uint16_t port, uint64_t number) {
  trusting_process own{guest};
  const auto found = connect_to(own.system, {"localhost", port}, 10s);
  REQUIRE_MESSAGE(found, render(found.error()));
  caf::expected<uint64_t> result{caf::error{}};
  caf::scoped_actor self{own.system};
  self->request(caf::actor_cast<caf::actor>(found->handle), 10s, number)
    .receive([&](uint64_t sum) { result = sum; }, [&](const caf::error& x) { result = x; });
  return result;
}

} // namespace

TEST_CASE("tls connections: two with certificates of one authority exchange messages of any size") {
  certified_hosts hosts;
  const door_of_process door{hosts.of(loopback_host())};
  const auto sum = sum_of(hosts.of(loopback_host("host-b")), door.port, 41);
  REQUIRE_MESSAGE(sum, render(sum.error()));
  CHECK(*sum == 42);
}

TEST_CASE("tls connections: the role in a certificate decides what is allowed") {
  certified_hosts hosts;
  const door_of_process door{hosts.of(loopback_host())};
  const auto denied = sum_of(hosts.of({"alice", role::client, {}}), door.port, 41);
  REQUIRE_FALSE(denied);
  CHECK(code_of(denied.error()) == errc::permission_denied);
  CHECK_MESSAGE(contains(render(denied.error()), "a client may send to the coordinator only"), render(denied.error()));
}

TEST_CASE("tls connections: the environment has the certificate, or names its files") {
  certified_hosts hosts;
  const auto settings = hosts.of(loopback_host());
  ::setenv("RINGMASTER_CERTIFICATE", settings.tls.certificate.c_str(), 1);
  ::setenv("RINGMASTER_KEY", settings.tls.key.c_str(), 1);
  ::setenv("RINGMASTER_AUTHORITY", settings.tls.authority.c_str(), 1);
  const door_of_process door{{.insecure = false}};
  CHECK(door.enter_as({.insecure = false}));
  auto own = hosts.authority.certify(loopback_host());
  ::setenv("RINGMASTER_CERTIFICATE", own.certificate.c_str(), 1);
  ::setenv("RINGMASTER_KEY", own.key.c_str(), 1);
  ::setenv("RINGMASTER_AUTHORITY", hosts.authority.own().certificate.c_str(), 1);
  CHECK(door.enter_as({.insecure = false}));
  ::unsetenv("RINGMASTER_KEY");
  const auto half = door.enter_as({.insecure = false});
  REQUIRE_FALSE(half);
  CHECK_MESSAGE(contains(render(half.error()), "TLS needs three files"), render(half.error()));
}

TEST_CASE("tls connections: with a secret, both are proved") {
  certified_hosts hosts;
  const auto secret = (hosts.dir.path() / "secret").string(), other = (hosts.dir.path() / "other").string();
  REQUIRE(!shared_secret::random().create(secret));
  REQUIRE(!shared_secret::random().create(other));
  auto both = hosts.of(loopback_host());
  both.secret_file = secret;
  {
    const door_of_process door{both};
    CHECK(door.enter_as(both));
  }
  auto wrong = both;
  wrong.secret_file = other;
  CHECK(contains(visit(both, wrong).error, "has another secret than this process"));
  wrong.secret_file.clear();
  const auto without = visit(both, wrong);
  CHECK_MESSAGE(contains(without.error, "requires the secret of its cluster beside a certificate"), without.error);
  CHECK_MESSAGE(contains(without.log, "it has no secret"), without.log);
  const auto too_much = visit(wrong, both);
  CHECK_MESSAGE(contains(too_much.error, "requires no secret beside its certificate"), too_much.error);
}

TEST_CASE("tls connections: every refusal is a sentence at both ends") {
  certified_hosts hosts;
  const auto host = hosts.of(loopback_host());
  const trust_authority other{"another-authority"};
  const trust_settings foreign{.tls = other.write(hosts.dir.path(), "foreign", other.certify(loopback_host("host-x"))),
                               .insecure = false};
  const auto mallory = other.certify({"mallory", role::member, {}}); // who knows our authority as well
  const trust_settings stranger{
    .tls = {mallory.certificate, mallory.key, other.own().certificate + hosts.authority.own().certificate},
    .insecure = false};
  struct {
    const char* what;
    trust_settings door, guest;
    std::string to, error, log;
  } const cases[] = {
    {"plain guest",
     host,
     {.insecure = true},
     "127.0.0.1",
     "requires TLS with certificates on both sides, and this process has none",
     "it has no certificate and encrypts nothing, and TLS is required"},
    {"guest without anything",
     host,
     {.insecure = false},
     "127.0.0.1",
     "requires TLS with certificates on both sides, and this process has none: name one by --certificate",
     "it has no certificate and encrypts nothing, and TLS is required"},
    {"plain door",
     {.insecure = true},
     host,
     "127.0.0.1",
     "has no certificate and encrypts nothing, so it may be any process",
     "it requires TLS, and this process has no certificate"},
    {"authority", host, foreign, "127.0.0.1", "that the authority of this process has not signed",
     "it refuses this process's certificate"},
    {"stranger", host, stranger, "127.0.0.1", "refuses this process's certificate",
     "it has the certificate of \"mallory\" that the authority of this process has not signed"},
    {"name", hosts.of({"host-a", role::member, {"host-a", "10.0.0.1"}}), host, "127.0.0.1",
     "has the certificate of \"host-a\" for host-a, 10.0.0.1, and this process connects to 127.0.0.1",
     "it connects by a name or address that this has not"},
    {"role", hosts.of({"alice", role::observer, {"127.0.0.1"}}), host, "127.0.0.1", "is only for connecting", "it "},
  };
  for (auto& each : cases) {
    CAPTURE(each.what);
    const auto refused = visit(each.door, each.guest, each.to);
    CHECK_MESSAGE(contains(refused.error, each.error), refused.error);
    CHECK_MESSAGE(contains(refused.log, each.log), refused.log);
  }
}

TEST_CASE("tls connections: a process with a certificate that has expired does not start") {
  certified_hosts hosts;
  const auto late = hosts.of(loopback_host(), expired());
  const door_of_process door{hosts.of(loopback_host())};
  const auto refused = door.enter_as(late);
  REQUIRE_FALSE(refused);
  CHECK_MESSAGE(contains(render(refused.error()), "certificate has expired"), render(refused.error()));
}

TEST_CASE("tls connections: what is no process of Ringmaster is closed") {
  certified_hosts hosts;
  const door_of_process door{hosts.of(loopback_host())};
  for (const auto bytes :
       {std::string_view{"GET / HTTP/1.1\r\n\r\n"}, std::string_view{"\x16\x03\x01\x00\x05hello", 10}}) {
    const auto visitor = door.visitor();
    REQUIRE(::send(visitor.descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
    std::array<char, 4096> heard;
    ssize_t got = 1;
    while (got > 0) { // a hang fails at the test's limit
      pollfd waits{visitor.descriptor, POLLIN, 0};
      REQUIRE(::poll(&waits, 1, 10'000) == 1);
      got = ::recv(visitor.descriptor, heard.data(), heard.size(), 0);
    }
  }
}
