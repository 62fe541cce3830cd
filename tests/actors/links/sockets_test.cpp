#include "actors/links/sockets.hpp"

#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <cerrno>

using namespace ringmaster;
using namespace ringmaster::test;

TEST_CASE("sockets: advice names the setting of what is to listen there") {
  struct expectation {
    listener_kind whom;
    const char* setting;
  };
  const expectation all[] = {
    {listener_kind::coordinator, "--host (coordinator.host)"},
    {listener_kind::node, "--listen-host (node.listen-host)"},
    {listener_kind::bulk_link, "link.addresses"},
  };
  for (auto& x : all)
    for (auto& other : all)
      CHECK(contains(connect_advice(ENETUNREACH, x.whom), other.setting) == (x.whom == other.whom));
  CHECK(contains(connect_advice(ECONNREFUSED, listener_kind::coordinator), "--host ADDRESS (coordinator.host)"));
  CHECK(contains(connect_advice(ECONNREFUSED, listener_kind::node), "--listen-host"));
  CHECK(contains(connect_advice(ECONNREFUSED, listener_kind::bulk_link), "link.addresses and link.port"));
}
