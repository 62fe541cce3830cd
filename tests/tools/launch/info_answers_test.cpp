#include "tools/launch/node_losses.hpp"

#include <doctest/doctest.h>

using namespace ringmaster::launch;

TEST_CASE("info answers: the nodes that are missing") {
  CHECK(missing_nodes_in("{\"missing\":[\"node-2\",\"b c\"],\"missing_devices\":0}\n")
        == std::set<std::string>{"b c", "node-2"});
  for (auto none : {"", "missing: node-2\n", "{}", "{\"missing\":\"node-2\"}", "{\"missing\":[\"node-2\""})
    CHECK(missing_nodes_in(none).empty());
}

TEST_CASE("info answers: what a node took with it, and whether ranks were lost") {
  auto loss = loss_in("{\"lost\":\"devices 0x3 0x4 of communicator 7 (ended)\",\"communicators\":[7]}\n");
  REQUIRE(loss);
  CHECK(loss->text == "devices 0x3 0x4 of communicator 7 (ended)");
  CHECK(loss->has_ranks);
  loss = loss_in("{\"lost\":\"no device\",\"communicators\":[]}");
  REQUIRE(loss);
  CHECK_FALSE(loss->has_ranks);
  for (auto none : {"", "devices 0x3 of communicator 7", "{\"communicators\":[7]}"})
    CHECK_FALSE(loss_in(none));
}
