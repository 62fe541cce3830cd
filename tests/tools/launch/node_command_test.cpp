#include "tools/launch/node_command.hpp"

#include "tests/support/processes/launched_program.hpp"

#include <doctest/doctest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace ringmaster::launch;
using namespace std::chrono_literals;

namespace {

command_line some_line() {
  command_line line;
  line.binary = "/opt/ringmaster";
  line.port = 7000;
  return line;
}

} // namespace

TEST_CASE("node_command: coordinator, node and info get what they need") {
  auto line = some_line();
  CHECK(coordinator_command(line, "/tmp/p", true)
        == argument_list{"/opt/ringmaster", "coordinator", "--port", "7000", "--port-file", "/tmp/p"});
  CHECK(node_command(line, {"localhost", "n1", 4, true}, "h:7000", true)
        == argument_list{"/opt/ringmaster", "node", "--join", "h:7000", "--devices", "4", "--name", "n1"});
  CHECK(info_command(line, {"node-1", "node-2"}, "h:7000", 1001ms)
        == argument_list{"/opt/ringmaster", "info", "--join", "h:7000", "--nodes", "node-1,node-2", "--timeout", "2s",
                         "--json"});
}

TEST_CASE("node_command: the gateway gets its addresses and the coordinator's") {
  auto line = some_line();
  line.gateway_binary = "/opt/gateway";
  line.gateway = "127.0.0.1:50051";
  CHECK(gateway_command(line, "h:7000", "/tmp/r")
        == argument_list{"/opt/gateway", "--join", "h:7000", "--grpc", "127.0.0.1:50051", "--ready-file", "/tmp/r"});
  line.http = "127.0.0.1:8080";
  line.conf = "a.conf";
  CHECK(gateway_command(line, "h:7000", "/tmp/r")
        == argument_list{"/opt/gateway", "--join", "h:7000", "--grpc", "127.0.0.1:50051", "--ready-file", "/tmp/r",
                         "--http", "127.0.0.1:8080", "--conf", "a.conf"});
}

TEST_CASE("node_command: the coordinator leaves loopback only where another host is to join") {
  auto coordinator = coordinator_command(some_line(), "p", false);
  CHECK(argument_list(coordinator.end() - 2, coordinator.end()) == argument_list{"--host", "0.0.0.0"});
}

TEST_CASE("node_command: where another host is to join, every node finds the address by which others reach it") {
  for (bool local : {true, false}) {
    auto node = node_command(some_line(), {"beta", "n1", 1, local}, "10.0.0.1:7000", false);
    auto words = fmt::format("{}", fmt::join(node, " "));
    CHECK(words.find("--listen-host") != std::string::npos);
    CHECK(words.find("auto") != std::string::npos);
  }
}

TEST_CASE("node_command: hands configuration and journal on") {
  auto line = some_line();
  line.conf = "c.conf";
  line.journal = "log";
  auto coordinator = coordinator_command(line, "p", true);
  CHECK(argument_list(coordinator.end() - 4, coordinator.end())
        == argument_list{"--journal", "log", "--conf", "c.conf"});
  auto node = node_command(line, {"localhost", "n1", 1, true}, "h:1", true);
  CHECK(argument_list(node.end() - 2, node.end()) == argument_list{"--conf", "c.conf"});
}

TEST_CASE("node_command: a remote node is started by ssh with the remote binary") {
  auto line = some_line();
  line.remote_binary = "/usr/local/bin/ringmaster";
  auto command = node_command(line, {"far", "n1", 1, false}, "h:1", false);
  REQUIRE(command.size() == 11);
  CHECK(argument_list(command.begin(), command.end() - 1)
        == argument_list{"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", "-o", "ServerAliveInterval=10", "-o",
                         "ServerAliveCountMax=3", "far"});
  CHECK(command[10].find("/usr/local/bin/ringmaster") != std::string::npos);
  line.remote_binary.clear();
  CHECK(node_command(line, {"far", "n1", 1, false}, "h:1", false)[10].find("/opt/ringmaster") != std::string::npos);
}

TEST_CASE("node_command: the remote command survives two shells") {
  script_directory scripts;
  auto line = some_line();
  line.binary = scripts.write("it's a $HOME; binary", "#!/bin/sh\nfor word; do echo \"<$word>\"; done\nexit 4\n");
  line.conf = "a 'quoted' \"one\"";
  launched_program shell({"sh", "-c", node_command(line, {"far", "n1", 1, false}, "h:1", false)[10]});
  CHECK(shell.finish() == 4);
  CHECK(shell.output
        == "<node>\n<--join>\n<h:1>\n<--devices>\n<1>\n<--name>\n<n1>\n<--conf>\n<a 'quoted' "
           "\"one\">\n<--listen-host>\n<auto>\n");
}

TEST_CASE("node_command: the remote node ends when the input of its shell does") {
  script_directory scripts;
  auto line = some_line();
  line.binary = scripts.write("ringmaster", "#!/bin/sh\necho ready\nexec sleep 1000\n");
  launched_program shell({"sh", "-c", node_command(line, {"far", "n1", 1, false}, "h:1", false)[10]});
  CHECK(shell.await_output("ready"));
  shell.child.stop();
  CHECK(shell.finish() == 128 + SIGTERM);
}

TEST_CASE("node_command: quotes any text as one word") {
  CHECK(shell_quote("") == "''");
  CHECK(shell_quote("a b") == "'a b'");
  CHECK(shell_quote("it's") == "'it'\\''s'");
}
