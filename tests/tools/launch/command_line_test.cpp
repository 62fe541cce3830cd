#include "tools/launch/command_line.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::launch;
using namespace std::chrono_literals;

namespace {

using words = std::vector<std::string>;

std::string refusal(const words& arguments) {
  auto line = parse_command_line(arguments);
  return line ? "accepted" : render(line.error());
}

} // namespace

TEST_CASE("command_line: has defaults for all but the nodes and the program") {
  auto line = parse_command_line({"--local", "3", "--", "prog", "--local", "x"});
  REQUIRE(line);
  CHECK(line->local_nodes == 3);
  CHECK(line->devices_per_node == 2);
  CHECK(line->port == 0);
  CHECK(line->timeout == 30s);
  CHECK(line->ssh == "ssh");
  CHECK(line->conf == "");
  CHECK(line->program == words{"prog", "--local", "x"});
}

TEST_CASE("command_line: takes values after a blank or an equals sign") {
  auto line = parse_command_line({"--hostfile=h=1", "--port", "7000", "--timeout=250ms", "--conf", "c", "--journal", "j",
                                  "--address", "me", "--binary", "b", "--remote-binary=r", "--ssh", "s",
                                  "--devices-per-node", "8", "prog", "-v"});
  REQUIRE(line);
  CHECK(line->hostfile == "h=1");
  CHECK(line->port == 7000);
  CHECK(line->timeout == 250ms);
  CHECK(line->conf == "c");
  CHECK(line->journal == "j");
  CHECK(line->address == "me");
  CHECK(line->binary == "b");
  CHECK(line->remote_binary == "r");
  CHECK(line->ssh == "s");
  CHECK(line->devices_per_node == 8);
  CHECK(line->program == words{"prog", "-v"});
}

TEST_CASE("command_line: asks for help before anything else is checked") {
  auto line = parse_command_line({"--help"});
  REQUIRE(line);
  CHECK(line->help);
}

TEST_CASE("command_line: says what would be right") {
  CHECK(refusal({}) == "give either --local N or --hostfile FILE");
  CHECK(refusal({"--local", "2", "--hostfile", "f", "p"}) == "give either --local N or --hostfile FILE");
  CHECK(refusal({"--local", "2"}).find("no PROGRAM: name what to run") == 0);
  CHECK(refusal({"--local", "2", "--"}).find("no PROGRAM: name what to run") == 0);
  CHECK(refusal({"--local", "0", "p"}) == "--local wants a number from 1 to 1024, not '0'");
  CHECK(refusal({"--local", "two", "p"}) == "--local wants a number from 1 to 1024, not 'two'");
  CHECK(refusal({"--local", "-1", "p"}) == "--local wants a number from 1 to 1024, not '-1'");
  CHECK(refusal({"--port", "65536", "p"}) == "--port wants a number from 0 to 65535, not '65536'");
  CHECK(refusal({"--local"}) == "--local wants a value");
  CHECK(refusal({"--journal="}) == "--journal wants a value");
  CHECK(refusal({"--nodes", "2"}) == "there is no option --nodes; caf-run --help names them all");
  CHECK(refusal({"--timeout", "30"}) == "--timeout: '30' is not a duration; write 500ms, 30s or 2min");
}

TEST_CASE("command_line: reads durations with their unit") {
  CHECK(*parse_duration("500ms") == 500ms);
  CHECK(*parse_duration("30s") == 30s);
  CHECK(*parse_duration("2min") == 2min);
  for (auto* wrong : {"", "s", "0s", "-1s", "1.5s", "30 s", "1h", "99999999999s"})
    CHECK_FALSE(parse_duration(wrong));
}
