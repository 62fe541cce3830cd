#include "tools/launch/hostfile.hpp"

#include "messages/errc.hpp"
#include "runtime/text/own_address.hpp"

#include <doctest/doctest.h>

#include <fmt/format.h>

using namespace ringmaster;
using namespace ringmaster::launch;

namespace {

caf::expected<std::vector<node_place>> parse(std::string_view text) {
  return parse_hostfile(text, "hosts", 2, "my-own-host");
}

const std::string forms = "a line is HOST, HOST slots=DEVICES, HOST:DEVICES, n[1-4]:DEVICES or several of these with "
                          "commas; HOST may be USER@HOST; after it max_slots=, user= and name= may follow";

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

namespace {

/// "beta/4 gamma/2": hosts, and the devices of each.
std::string hosts_in(std::string_view text) {
  auto places = parse(text);
  if (!places)
    return render(places.error());
  std::string result;
  for (auto& x : *places)
    result += fmt::format("{}{}/{}", result.empty() ? "" : " ", x.host, x.devices);
  return result;
}

} // namespace

TEST_CASE("hostfile: takes slots as each launcher has them") {
  CHECK(hosts_in("beta:4\ngamma\n") == "beta/4 gamma/2");               // MPICH, Intel MPI
  CHECK(hosts_in("localhost:2\r\nbeta:1\r\n") == "localhost/2 beta/1"); // horovodrun, from Windows
  CHECK(hosts_in("beta slots=4 max_slots=8\n") == "beta/4");            // Open MPI
  CHECK(hosts_in("beta max-slots=1\ngamma slots_max=9") == "beta/1 gamma/2");
  CHECK(hosts_in("beta slots=3 // the large one\n//gamma") == "beta/3");
  CHECK(hosts_in("me@beta:3\nbeta user=me slots=1") == "me@beta/3 me@beta/1");
  CHECK(hosts_in("beta:2,gamma:1,delta") == "beta/2 gamma/1 delta/2"); // horovodrun -H
  CHECK(hosts_in("n[08-10]:4") == "n08/4 n09/4 n10/4");                // SLURM
  CHECK(hosts_in("n[1-2,7] slots=1\nm[1-2]x:3,b") == "n1/1 n2/1 n7/1 m1x/3 m2x/3 b/2");
  CHECK(hosts_in("\xef\xbb\xbf"
                 "beta:4\r\n")
        == "beta/4");
}

TEST_CASE("hostfile: IPv6 addresses have brackets where slots follow a colon") {
  CHECK(hosts_in("fd00::7\n[fd00::7]\n[fd00::7]:4\nfd00::7 slots=3\nme@[fd00::7]:2\nfe80::1%eth0")
        == "fd00::7/2 fd00::7/2 fd00::7/4 fd00::7/3 me@fd00::7/2 fe80::1%eth0/2");
  CHECK((*parse("[::1]:4"))[0].local);
  CHECK(refusal("fe80::1%$(x)") == "hosts:1: 'fe80::1%$(x)' is not the name of a host; " + forms);
}

TEST_CASE("hostfile: an address of this host is this host") {
  for (auto& each : addresses_of_host())
    CHECK((*parse(each))[0].local);
  CHECK_FALSE((*parse("192.0.2.1"))[0].local);
  CHECK_FALSE((*parse("me@localhost"))[0].local); // somebody else here needs ssh
}

TEST_CASE("hostfile: says what is wrong with slots after a colon, with ranges and with names for several hosts") {
  CHECK(
    refusal("a:2222")
    == "hosts:1: slots, the number of devices: \"2222\" is not an integer from 1 to 1024; 'a:2222' is HOST:SLOTS, and "
       "a port of ssh belongs into ~/.ssh/config");
  CHECK(refusal("a:") == "hosts:1: 'a:' is neither a host nor HOST:DEVICES; " + forms);
  CHECK(refusal("a:4:mlx5_0") == "hosts:1: 'a:4:mlx5_0' is neither a host nor HOST:DEVICES; " + forms);
  CHECK(refusal("a:2 slots=3") == "hosts:1: 'a:2' has slots already: leave slots=3 out");
  CHECK(refusal("a slots=3 max_slots=2") == "hosts:1: slots=3 are more than max_slots=2");
  CHECK(refusal("a max_slots=x") == "hosts:1: max_slots, the most slots: \"x\" is not an integer from 1 to 4294967295");
  CHECK(refusal("n[1-2] name=x") == "hosts:1: name=x is one name, and 'n[1-2]' are several hosts");
  CHECK(refusal("n[1-") == "hosts:1: \"n[1-\" is no SLURM list of hosts: a '[' without its ']'");
  CHECK(refusal("n[1-2000]") == "hosts:1: more than 1024 nodes");
  CHECK(refusal("a,,b") == "hosts:1: '' is not the name of a host; " + forms);
  CHECK(refusal("-o@a") == "hosts:1: '-o@a' is not the name of a host; " + forms);
}

TEST_CASE("hostfile: UTF-16 is refused with a sentence") {
  CHECK(refusal(std::string_view{"\xff\xfe"
                                 "a\0\n\0",
                                 6})
        == "hosts: it is in UTF-16, and must be in UTF-8: `iconv -f UTF-16 -t UTF-8` converts it");
}

TEST_CASE("hostfile: names the file and the line of a mistake") {
  CHECK(refusal("a\n\nb slots=x\n") == "hosts:3: slots, the number of devices: \"x\" is not an integer from 1 to 1024");
  CHECK(refusal("a slots=0") == "hosts:1: slots, the number of devices: \"0\" is not an integer from 1 to 1024");
  CHECK(refusal("a slots=1025") == "hosts:1: slots, the number of devices: \"1025\" is not an integer from 1 to 1024");
  for (auto text : {"a slots=", "a slots = 2", "a slots"})
    CHECK(refusal(text) == "hosts:1: slots= has no value: write slots=VALUE, without blanks around the sign");
  CHECK(refusal("a slots=2 name=x slots=3") == "hosts:1: slots= is there twice");
  CHECK(refusal("localhost(2)") == "hosts:1: 'localhost(2)' is not the name of a host; " + forms);
  CHECK(refusal("a slot=2") == "hosts:1: 'slot=2' is unknown; " + forms);
  CHECK(refusal("a 2") == "hosts:1: '2' is unknown; " + forms);
  CHECK(refusal("a name=x,y") == "hosts:1: a name has letters, digits, '.', '_' and '-', which 'x,y' is not");
  CHECK(refusal("a name=x\nb name=x") == "hosts:2: the name x is taken by an earlier line");
  CHECK(refusal("a name=node-2\nb") == "hosts:2: the name node-2 is taken by an earlier line");
}

TEST_CASE("hostfile: takes no host that ssh or a shell could misread") {
  CHECK(refusal("-oProxyCommand=x") == "hosts:1: '-oProxyCommand=x' is not the name of a host; " + forms);
  CHECK(refusal("a;b") == "hosts:1: 'a;b' is not the name of a host; " + forms);
  CHECK(refusal("$(a)") == "hosts:1: '$(a)' is not the name of a host; " + forms);
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

TEST_CASE("hostfile: SLURM's hosts are nodes with a device for each task") {
  auto places = slurm_places("a[1-2],my-own-host", "2(x2),1", 8, "my-own-host.example");
  REQUIRE(places);
  REQUIRE(places->size() == 3);
  CHECK((*places)[1].host == "a2");
  CHECK((*places)[1].name == "node-2");
  CHECK((*places)[1].devices == 2);
  CHECK_FALSE((*places)[1].local);
  CHECK((*places)[2].devices == 1);
  CHECK((*places)[2].local);
  CHECK((*slurm_places("a1", "", 8, "b"))[0].devices == 8);
}

TEST_CASE("hostfile: of SLURM's variables it names the one that is wrong") {
  auto refusal_of = [](const std::string& hosts, const std::string& tasks) {
    auto places = slurm_places(hosts, tasks, 2, "b");
    return places ? "accepted" : render(places.error());
  };
  CHECK(refusal_of("a[1-", "") == "SLURM_JOB_NODELIST: \"a[1-\" is no SLURM list of hosts: a '[' without its ']'");
  CHECK(refusal_of("a[1-2000]", "") == "SLURM_JOB_NODELIST: more than 1024 nodes");
  CHECK(refusal_of("-oProxyCommand=x", "") == "SLURM_JOB_NODELIST: '-oProxyCommand=x' is not the name of a host");
  CHECK(refusal_of("a", "x").find("SLURM_TASKS_PER_NODE: \"x\" is no SLURM list of tasks") == 0);
  CHECK(refusal_of("a,b", "1")
        == "SLURM_TASKS_PER_NODE: \"1\" is for 1 hosts, and SLURM_JOB_NODELIST names 2: \"a,b\"");
  CHECK(refusal_of("a", "0") == "SLURM_TASKS_PER_NODE: 0 tasks are not from 1 to 1024");
}

TEST_CASE("hostfile: ranks fill a host before the next, and are counted on each") {
  auto hosts = parse("alpha slots=2\nbeta slots=1\nalpha slots=1\n");
  auto places = rank_places(4, *hosts);
  REQUIRE(places);
  std::string text;
  for (auto& x : *places)
    text += x.host + std::to_string(x.local_rank) + " ";
  CHECK(text == "alpha0 alpha1 beta0 alpha2 ");
  CHECK(rank_places(3, *hosts)->size() == 3);
  CHECK(render(rank_places(5, *hosts).error()).find("--ranks 5, but the hosts have 4 slots") == 0);
  auto here = local_ranks(2);
  CHECK(here[1].rank == 1);
  CHECK(here[1].local_rank == 1);
  CHECK(here[1].local);
}
