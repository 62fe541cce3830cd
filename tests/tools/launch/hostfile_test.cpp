#include "tools/launch/hostfile.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::launch;

namespace {

caf::expected<std::vector<node_place>> parse(std::string_view text) {
  return parse_hostfile(text, "hosts", 2, "my-own-host");
}

std::string refusal(std::string_view text) {
  auto places = parse(text);
  return places ? "accepted" : render(places.error());
}

} // namespace

TEST_CASE("hostfile: gives a node a line, with defaults") {
  auto places = parse("# the cluster\n\nalpha\n  beta slots=4 name=big # the large one\r\nuser@10.0.0.7\tslots=1");
  REQUIRE(places);
  REQUIRE(places->size() == 3);
  CHECK((*places)[0].host == "alpha");
  CHECK((*places)[0].name == "node-1");
  CHECK((*places)[0].devices == 2);
  CHECK((*places)[1].name == "big");
  CHECK((*places)[1].devices == 4);
  CHECK((*places)[2].host == "user@10.0.0.7");
  CHECK((*places)[2].name == "node-3");
  CHECK((*places)[2].devices == 1);
}

TEST_CASE("hostfile: knows this host by its names") {
  auto places = parse("localhost\n127.0.0.1\n::1\nmy-own-host\nmy-own-host-2\n");
  REQUIRE(places);
  for (size_t i = 0; i < 4; ++i)
    CHECK((*places)[i].local);
  CHECK_FALSE((*places)[4].local);
}

TEST_CASE("hostfile: names the file and the line of a mistake") {
  CHECK(refusal("a\n\nb slots=x\n") == "hosts:3: slots, the number of devices: \"x\" is not an integer from 1 to 1024");
  CHECK(refusal("a slots=0") == "hosts:1: slots, the number of devices: \"0\" is not an integer from 1 to 1024");
  CHECK(refusal("a slots=1025") == "hosts:1: slots, the number of devices: \"1025\" is not an integer from 1 to 1024");
  CHECK(refusal("a slots=") == "hosts:1: slots, the number of devices: \"\" is not an integer from 1 to 1024");
  CHECK(refusal("a slot=2") == "hosts:1: 'slot=2' is unknown; a line is HOST [slots=DEVICES] [name=NAME]");
  CHECK(refusal("a 2") == "hosts:1: '2' is unknown; a line is HOST [slots=DEVICES] [name=NAME]");
  CHECK(refusal("a name=x,y") == "hosts:1: a name has letters, digits, '.', '_' and '-', which 'x,y' is not");
  CHECK(refusal("a name=x\nb name=x") == "hosts:2: the name x is taken by an earlier line");
  CHECK(refusal("a name=node-2\nb") == "hosts:2: the name node-2 is taken by an earlier line");
}

TEST_CASE("hostfile: takes no host that ssh or a shell could misread") {
  CHECK(refusal("-oProxyCommand=x") == "hosts:1: '-oProxyCommand=x' is not the name of a host");
  CHECK(refusal("a;b") == "hosts:1: 'a;b' is not the name of a host");
  CHECK(refusal("$(a)") == "hosts:1: '$(a)' is not the name of a host");
}

TEST_CASE("hostfile: refuses a file that names no host, or too many") {
  CHECK(refusal("") == "hosts: names no host; write one a line");
  CHECK(refusal("# nobody\n") == "hosts: names no host; write one a line");
  std::string many;
  for (uint32_t i = 0; i <= max_nodes; ++i)
    many += "a\n";
  CHECK(refusal(many) == "hosts:1025: more than 1024 nodes");
}

TEST_CASE("hostfile: local places have distinct names") {
  auto places = local_places(3, 4);
  REQUIRE(places.size() == 3);
  CHECK(places[0].name == "node-1");
  CHECK(places[2].name == "node-3");
  CHECK(places[2].devices == 4);
  CHECK(places[2].local);
}
