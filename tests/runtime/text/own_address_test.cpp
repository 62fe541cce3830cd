#include "runtime/text/own_address.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

TEST_CASE("own_address: to itself a host is what it calls itself, and nobody knows the way to a name that nobody has") {
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

TEST_CASE("own_address: what only this host is reached by is known by its looks") {
  for (auto host : {"localhost", "127.0.0.1", "127.0.1.1", "::1"})
    CHECK(is_loopback(host));
  for (auto host : {"10.0.0.7", "node1", "fe80::1", "128.0.0.1"})
    CHECK_FALSE(is_loopback(host));
}
