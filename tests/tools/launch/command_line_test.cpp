#include "tools/launch/command_line.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::launch;
using namespace std::chrono_literals;

namespace {

using words = std::vector<std::string>;

caf::error read_into(command_line& line, const words& arguments) {
  option_table table{"caf-run"};
  line.add_to(table);
  auto problem = table.read(arguments);
  return problem ? problem : line.check();
}

std::string refusal(const words& arguments) {
  command_line line;
  auto problem = read_into(line, arguments);
  return problem ? render(problem) : "accepted";
}

} // namespace

TEST_CASE("command_line: has defaults for all but the nodes and the program") {
  command_line line;
  REQUIRE(!read_into(line, {"--local", "3", "--", "prog", "--local", "x"}));
  CHECK(line.local_nodes == 3);
  CHECK(line.devices() == 2);
  CHECK(line.port == 0);
  CHECK(line.timeout == 30s);
  CHECK(line.ssh == "ssh");
  CHECK(line.conf == "");
  CHECK(line.program == words{"prog", "--local", "x"});
}

TEST_CASE("command_line: takes values after a blank or an equals sign") {
  command_line line;
  REQUIRE(!read_into(line, {"--hostfile=h=1", "--port", "7000", "--timeout=250ms", "--conf", "c", "--journal", "j",
                            "--address", "me", "--binary", "b", "--remote-binary=r", "--ssh", "s", "--devices-per-node",
                            "8", "prog", "-v"}));
  CHECK(line.hostfile == "h=1");
  CHECK(line.port == 7000);
  CHECK(line.timeout == 250ms);
  CHECK(line.conf == "c");
  CHECK(line.journal == "j");
  CHECK(line.address == "me");
  CHECK(line.binary == "b");
  CHECK(line.remote_binary == "r");
  CHECK(line.ssh == "s");
  CHECK(line.devices() == 8);
  CHECK(line.program == words{"prog", "-v"});
}

TEST_CASE("command_line: says what would be right") {
  CHECK(refusal({}).find("no PROGRAM: name what to run") == 0);
  CHECK(refusal({"--local", "2", "--ranks", "2", "p"}).find("--ranks N makes every process of PROGRAM a node") == 0);
  CHECK(refusal({"--local", "2", "--tag-output", "p"}).find("--tag-output is for --ranks") == 0);
  CHECK(refusal({"--ranks", "0", "p"}) == "--ranks: \"0\" is not an integer from 1 to 1024");
  CHECK(refusal({"--ranks", "4", "--tag-output", "p"}) == "accepted");
  CHECK(refusal({"--ranks", "4", "--hostfile", "f", "p"}) == "accepted");
  CHECK(refusal({"--local", "2", "--hostfile", "f", "p"}) == "give either --local N or --hostfile FILE");
  CHECK(refusal({"--local", "2"}).find("no PROGRAM: name what to run") == 0);
  CHECK(refusal({"--local", "2", "--"}).find("no PROGRAM: name what to run") == 0);
  CHECK(refusal({"--local", "0", "p"}) == "--local: \"0\" is not an integer from 1 to 1024");
  CHECK(refusal({"--local", "two", "p"}) == "--local: \"two\" is not an integer from 1 to 1024");
  CHECK(refusal({"--local", "-1", "p"}) == "--local: \"-1\" is not an integer from 1 to 1024");
  CHECK(refusal({"--port", "65536", "p"}) == "--port: \"65536\" is not an integer from 0 to 65535");
  CHECK(refusal({"--local"}) == "--local needs a value; see caf-run --help");
  CHECK(refusal({"--journal="}) == "--journal: it is empty");
  CHECK(refusal({"--nodes", "2"}) == "there is no option --nodes; see caf-run --help");
  CHECK(refusal({"--timeout", "30"})
        == "--timeout: \"30\" is not a duration such as 5us, 200ns, 1.5ms, 2s or 2min, of 46 days at most");
  CHECK(refusal({"--timeout", "10us"}) == "--timeout: \"10us\" is less than 1ms");
}

TEST_CASE("command_line: reads durations with their unit") {
  for (auto [text, time] :
       {std::pair{"500ms", 500ms}, {"1.5s", 1500ms}, {"30s", 30'000ms}, {"2min", 120'000ms}, {"1h", 3'600'000ms}}) {
    command_line line;
    CHECK(!read_into(line, {"--local=1", "--timeout", text, "p"}));
    CHECK(line.timeout == time);
  }
  for (auto* wrong : {"", "s", "0s", "-1s", "1w", "99999999999s"})
    CHECK(refusal({"--local=1", "--timeout", wrong, "p"}) != "accepted");
}

TEST_CASE("command_line: keys of the configuration are handed on, but for those that are options here") {
  command_line line;
  option_table table{"caf-run"};
  line.add_to(table);
  REQUIRE(!table.read(words{"--local", "2", "--device.memory-bytes=1M", "--coordinator.port=7000",
                            "--coordinator.host=::1", "--device.count=3", "--log.level=warn", "prog",
                            "--device.count=9"}));
  REQUIRE(!line.take_keys(table.for_configuration()));
  CHECK(line.keys == words{"--device.memory-bytes=1M", "--log.level=warn"});
  CHECK(line.port == 7000);
  CHECK(line.address == "::1");
  CHECK(line.devices() == 3);
  CHECK(line.program == words{"prog", "--device.count=9"});
  CHECK(line.has_key("log.level"));
  CHECK_FALSE(line.has_key("log"));
  for (auto wrong :
       {"--coordinator.port=70000", "--device.count=0", "--node.join=a:1", "--node.name=x", "--dump-config"})
    CHECK(render(line.take_keys({wrong})).find(std::string{wrong}.substr(0, std::string{wrong}.find('='))) == 0);
}

TEST_CASE("command_line: where coordinator and nodes listen is taken from the file, too") {
  command_line line;
  REQUIRE(!line.take_conf(
    "; [node]\n[coordinator]\r\nport=1\r\nhost = \"10.0.0.7\" ; here\n[ node ]\nlisten-host=\"10.0.0.8\"\n"));
  CHECK(line.address == "10.0.0.7");
  CHECK(line.conf_places_nodes);
  command_line by_default;
  REQUIRE(!by_default.take_conf("[coordinator]\nhost=\"0.0.0.0\"\n[node]\nlisten-host=\"auto\"\nhost=\"10.0.0.9\"\n"));
  CHECK(by_default.address == "");
  CHECK_FALSE(by_default.conf_places_nodes);
  command_line told;
  told.address = "head";
  REQUIRE(!told.take_conf("[coordinator]\nhost=\"10.0.0.7\""));
  CHECK(told.address == "head");
}

TEST_CASE("command_line: the devices of a node are taken from the file, but options go first") {
  const std::string file = "[device]\ncount=3 ; each\n[node]\ncount=9\n";
  auto devices_of = [&](words arguments, const std::string& text) {
    command_line line;
    option_table table{"caf-run"};
    line.add_to(table);
    arguments.insert(arguments.begin(), {"--local=1"});
    arguments.push_back("prog");
    REQUIRE(!table.read(arguments));
    REQUIRE(!line.take_keys(table.for_configuration()));
    auto problem = line.take_conf(text);
    return problem ? render(problem) : std::to_string(line.devices());
  };
  CHECK(devices_of({}, file) == "3");
  CHECK(devices_of({}, "[device]\nstreams=4\n") == "2");
  CHECK(devices_of({"--devices-per-node=4"}, file) == "4");
  CHECK(devices_of({"--devices-per-node=2"}, file) == "2");
  CHECK(devices_of({"--device.count=5"}, file) == "5");
  CHECK(devices_of({"--conf=c.conf"}, "[device]\ncount=0\n").starts_with("c.conf: device.count: "));
}

TEST_CASE("command_line: with a gateway no program is needed, except for ranks") {
  CHECK(refusal({"--local", "2", "--gateway", "127.0.0.1:50051"}) == "accepted");
  CHECK(refusal({"--local", "2", "--gateway", "a.conf", "--gateway-http", "127.0.0.1:0", "--", "prog"}) == "accepted");
  CHECK(refusal({"--ranks", "2", "--gateway", "127.0.0.1:50051"})
        == "--ranks starts PROGRAM as ranks, and there is none: name it, or give --local N");
  CHECK(refusal({"--local", "2", "--gateway-http", "127.0.0.1:0", "--", "prog"})
        == "--gateway-http is for --gateway WHERE");
}
