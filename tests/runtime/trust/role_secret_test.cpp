#include "runtime/trust/role_secret.hpp"

#include "messages/errc.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>

using namespace ringmaster;
using ringmaster::test::contains;

namespace {

shared_secret some_cluster() {
  return *shared_secret::of(std::string(32, 'c'), "a test's secret");
}

} // namespace

TEST_CASE("role secret: each role and name has one of its own, the same at each derivation") {
  std::set<std::string> seen;
  for (const auto as : {role::node, role::rank, role::client, role::operating, role::observer})
    for (const auto* name : {"", "alice", "bob"}) {
      const auto secret = derive_secret(some_cluster(), as, name);
      CHECK(secret == derive_secret(some_cluster(), as, name));
      CHECK(secret.bytes().size() == 32);
      seen.insert(std::string{secret.bytes()});
    }
  seen.insert(std::string{some_cluster().bytes()});
  seen.insert(std::string{derive_secret(shared_secret::random(), role::client, "alice").bytes()});
  CHECK(seen.size() == 17);
}

TEST_CASE("role secret: as other programs derive it") {
  // printf 'ringmaster role 1: observer\nalice\n' | openssl dgst -sha256 -hmac cccccccccccccccccccccccccccccccc
  CHECK(role_secret{role::observer, "alice", derive_secret(some_cluster(), role::observer, "alice")}.text()
        == "observer/alice:0af43cae6ec57c082a64e05abc7770b818972eb628f5680a4dd35632f0e8e1d8");
}

TEST_CASE("role secret: its text is read as what it was") {
  for (const auto as : {role::node, role::rank, role::client, role::operating, role::observer})
    for (const std::string name : {"", "alice", "node-3.example_B"}) {
      if (check_secret_name(as, name))
        continue;
      const role_secret made{as, name, derive_secret(some_cluster(), as, name)};
      const auto read = role_secret_of(*shared_secret::of(made.text(), "it"), "it");
      REQUIRE(read);
      CHECK(read->as == as);
      CHECK(read->name == name);
      CHECK(read->secret == made.secret);
    }
}

TEST_CASE("role secret: what is no text of one is the cluster's own") {
  for (const auto& bytes : {std::string(32, 'x'), "http://" + std::string(32, 'x'), "member:" + std::string(64, '0'),
                            std::string(16, ':') + std::string(16, '/')}) {
    const auto read = role_secret_of(*shared_secret::of(bytes, "it"), "it");
    REQUIRE(read);
    CHECK(read->as == role::member);
    CHECK(read->secret.bytes() == bytes);
  }
}

TEST_CASE("role secret: a text that was cut or changed is refused with what is wrong") {
  const auto problem_of = [](const std::string& text) {
    const auto read = role_secret_of(*shared_secret::of(text, "it"), "the file X");
    REQUIRE_FALSE(read);
    CHECK(code_of(read.error()) == errc::invalid_argument);
    return render(read.error());
  };
  const std::string hex(64, 'a');
  CHECK(contains(problem_of("observer:" + hex.substr(2)), "the file X"));
  CHECK(contains(problem_of("observer:" + hex + "00"), "33 bytes instead of 32"));
  CHECK(contains(problem_of("operator:" + std::string(64, 'g')), "digits 0 to f"));
  CHECK(contains(problem_of("client/a b:" + hex), "letters, digits"));
  CHECK(contains(problem_of("client/" + std::string(33, 'a') + ":" + hex), "33 bytes, and may have 32"));
  CHECK(contains(problem_of("node/alice:" + hex), "a node's secret has no name"));
}
