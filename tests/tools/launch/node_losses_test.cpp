#include "tools/launch/node_losses.hpp"

#include "tests/support/processes/watched_children.hpp"

#include <doctest/doctest.h>

using namespace ringmaster::launch;

namespace {

using time_point = process_watch::clock::time_point;

/// A node that has been killed, and a coordinator that answers as a script does.
struct lost_node {
  explicit lost_node(const std::string& answer) {
    line.binary = children.scripts.write("ringmaster", "#!/bin/sh\n" + answer);
    places.push_back({"localhost", "node-1", 2, true});
    nodes.push_back(children.start("node-1", "kill -9 $$"));
    REQUIRE(children.wait_until([&] { return ended(nodes.front()); }));
  }

  watched_children children;
  command_line line;
  std::vector<node_place> places;
  std::vector<watched_process*> nodes;
  node_losses losses{children.watch(), line, places};
};

} // namespace

TEST_CASE("node_losses: a node's loss is reported once, with what was lost with it") {
  lost_node x{R"(echo '{"lost":"rank 1 of communicator 3","communicators":[3]}')"};
  CHECK(x.losses.due() == time_point::max());
  REQUIRE(x.children.wait_until([&] {
    x.losses.look(x.nodes, "127.0.0.1:7", "the program goes on");
    return !x.children.said().empty();
  }));
  CHECK(x.losses.due() == time_point::max());
  x.losses.look(x.nodes, "127.0.0.1:7", "the program goes on");
  x.losses.finish(x.nodes, "the program has ended");
  CHECK(
    x.children.said()
    == "caf-run: node-1 was ended by signal 9 (Killed), and took with it rank 1 of communicator 3; the program goes "
       "on\n");
}

TEST_CASE("node_losses: at the end losses without an answer are reported, and nothing is due") {
  lost_node x{"exec sleep 60"};
  x.losses.look(x.nodes, "127.0.0.1:7", "the program goes on");
  CHECK(x.losses.due() != time_point::max());
  CHECK(x.children.said().empty());
  x.losses.finish(x.nodes, "the program goes on");
  CHECK(x.losses.due() == time_point::max()); // else caf-run would look again and again, without a rest
  CHECK(x.children.said() == "caf-run: node-1 was ended by signal 9 (Killed); the program goes on\n");
}

TEST_CASE("node_losses: without a coordinator nothing is asked") {
  lost_node x{R"(echo '{"lost":"rank 1 of communicator 3","communicators":[3]}')"};
  x.losses.look(x.nodes, "", "the program goes on");
  CHECK(x.children.said() == "caf-run: node-1 was ended by signal 9 (Killed); the program goes on\n");
}
