#include "runtime/text/own_address.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

TEST_CASE("own_address: the address towards this host is its own, and an unknown name is an error") {
  auto loopback = own_address_towards({"127.0.0.1", 22});
  REQUIRE(loopback);
  CHECK(*loopback == "127.0.0.1");
  // Also where /etc/hosts names a host 127.0.1.1, as Debian's does: others are not told that.
  auto other = own_address_towards({"127.0.1.1", 22});
  REQUIRE(other);
  CHECK(other->starts_with("127."));
  auto nobody = own_address_towards({"no-such-host.invalid", 22});
  REQUIRE_FALSE(nobody);
  CHECK(code_of(nobody.error()) == errc::invalid_argument);
  CHECK(render(nobody.error()).find("the host \"no-such-host.invalid\" is unknown") == 0);
}

TEST_CASE("own_address: recognises loopback addresses") {
  for (auto host :
       {"localhost", "127.0.0.1", "127.0.1.1", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", "ip6-localhost"})
    CHECK(is_loopback(host));
  for (auto host : {"10.0.0.7", "node1", "fe80::1", "128.0.0.1", "127.example", "::", "", "::ffff:10.0.0.7"})
    CHECK_FALSE(is_loopback(host));
}

TEST_CASE("own_address: recognises the unspecified address in any spelling") {
  for (auto host : {"0.0.0.0", "::", "0:0:0:0:0:0:0:0", "::ffff:0.0.0.0"})
    CHECK(is_any_address(host));
  for (auto host : {"", "localhost", "127.0.0.1", "::1", "*"})
    CHECK_FALSE(is_any_address(host));
}

TEST_CASE("own_address: an address is this host's if a socket can bind to it") {
  CHECK(is_own_address(loopback_address()));
  for (auto& each : addresses_of_host()) {
    CAPTURE(each);
    CHECK(is_own_address(each));
    CHECK_FALSE(is_loopback(each));
  }
  for (auto host :
       {"192.0.2.1", "2001:db8::1", "0.0.0.0", "::", "localhost", ""}) // documentation addresses belong to no host
    CHECK_FALSE(is_own_address(host));
  CHECK(is_any_address(any_address()));
}

TEST_CASE("own_address: options may name localhost, and addresses may have brackets") {
  CHECK(listening_address("localhost") == loopback_address());
  CHECK(listening_address("[::1]") == "::1");
  CHECK(listening_address("10.0.0.7") == "10.0.0.7");
  CHECK(own_addresses_text().find(loopback_address()) != std::string::npos);
}
