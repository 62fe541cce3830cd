#include "runtime/trust/certificates.hpp"

#include "messages/errc.hpp"
#include "runtime/trust/tls_identity.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"
#include "tests/support/trust_certificates.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

void refuses(const caf::expected<tls_identity_ptr>& x, errc code, const std::string& text) {
  REQUIRE_FALSE(x);
  CAPTURE(render(x.error()));
  CHECK(code_of(x.error()) == code);
  CHECK(contains(render(x.error()), text));
}

} // namespace

TEST_CASE("certificates: one says its name, role and hosts") {
  const trust_authority authority;
  const certificate_subject node{"node-1", role::node, {"node-1", "10.0.0.7", "fd00::7"}};
  const auto made = authority.certify(node);
  const auto read = subject_of(made.certificate);
  REQUIRE(read);
  CHECK(read->name == "node-1");
  CHECK(read->as == role::node);
  CHECK(read->hosts == node.hosts);
  CHECK(contains(made.key, "PRIVATE KEY"));
  const auto host = subject_of(authority.certify(loopback_host()).certificate);
  REQUIRE(host);
  CHECK(host->as == role::member);
}

TEST_CASE("certificates: no two have the same key") {
  const trust_authority authority;
  CHECK(authority.certify(loopback_host()).key != authority.certify(loopback_host()).key);
}

TEST_CASE("certificates: names that cannot be are refused") {
  const trust_authority authority;
  for (const auto& wrong : {certificate_subject{"", role::member, {}},
                            {std::string(65, 'x'), role::member, {}},
                            {"two words", role::member, {}},
                            {"host", role::member, {"a,DNS:b"}},
                            {"host", role::member, {""}}}) {
    const auto made = issue(authority.own(), wrong, valid_now());
    CAPTURE(wrong.name);
    REQUIRE_FALSE(made);
    CHECK(code_of(made.error()) == errc::invalid_argument);
  }
  CHECK_FALSE(issue(authority.certify(loopback_host()), loopback_host(), valid_now())); // a host is no authority
  CHECK_FALSE(issue({authority.own().certificate, trust_authority{}.own().key}, loopback_host(), valid_now()));
  CHECK_FALSE(subject_of(std::string{"no certificate"}));
}

TEST_CASE("tls identity: what does not belong together, or is not valid, is refused at the start") {
  const trust_authority authority, other{"another-authority"};
  const auto own = authority.certify(loopback_host()), second = authority.certify(loopback_host("host-b"));
  const auto with = [&](const certified_key& x, const trust_authority& by) {
    return tls_identity::of(x, by.own().certificate, "host-a.pem");
  };
  REQUIRE(with(own, authority));
  CHECK((*with(own, authority))->host() == "host-a");
  refuses(with({own.certificate, second.key}, authority), errc::invalid_argument, "the key is not that of");
  refuses(with(own, other), errc::invalid_argument, "host-a.pem cannot be used with this authority");
  refuses(with(authority.certify(loopback_host(), expired()), authority), errc::invalid_argument, "expired");
  refuses(with({"nothing", own.key}, authority), errc::invalid_argument, "has no certificate in PEM");
  refuses(with({own.certificate, "nothing"}, authority), errc::invalid_argument, "has no private key in PEM");
}

TEST_CASE("tls identity: files") {
  const temporary_directory dir;
  const trust_authority authority;
  const auto files = authority.write(dir.path(), "host-a", authority.certify(loopback_host()));
  REQUIRE(tls_identity::read(files));
  std::filesystem::permissions(files.key, std::filesystem::perms::group_read, std::filesystem::perm_options::add);
  refuses(tls_identity::read(files), errc::invalid_argument, "chmod 600 " + files.key);
  auto missing = files;
  missing.certificate = (dir.path() / "none.pem").string();
  refuses(tls_identity::read(missing), errc::io_error, "none.pem cannot be read: No such file");
  missing = files;
  missing.key = (dir.path() / "none.key").string();
  refuses(tls_identity::read(missing), errc::io_error, "none.key does not exist");
}
