// Real processes that come while the coordinator's stands still.
#include "tests/support/launched_program.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <memory>

using namespace ringmaster::launch;
using namespace ringmaster::test;

TEST_CASE(
  "late joins: a node, a command and ranks that start while the coordinator stands still wait, and say for what") {
  temporary_directory dir;
  const auto port_file = (dir.path() / "port").string();
  launched_program coordinator{{RINGMASTER_PROGRAM, "coordinator", "--port", "0", "--port-file", port_file}};
  REQUIRE(coordinator.wait_until([&] { return std::filesystem::exists(port_file); }));
  std::string port;
  std::ifstream{port_file} >> port;
  const auto where = "127.0.0.1:" + port;
  REQUIRE(::kill(coordinator.child.pid(), SIGSTOP) == 0);
  auto rank = [&](const char* number) {
    return std::make_unique<launched_program>(
      std::vector<std::string>{"env", "RINGMASTER_WORLD_SIZE=2", std::string{"RINGMASTER_RANK="} + number,
                               std::string{"RINGMASTER_LOCAL_RANK="} + number, "RINGMASTER_COORDINATOR=" + where,
                               RINGMASTER_RANK_PROGRAM, "sum"});
  };
  launched_program node{{RINGMASTER_PROGRAM, "node", "--join", where, "--devices", "1", "--name", "late"}};
  launched_program command{{RINGMASTER_PROGRAM, "info", "--join", where, "--nodes", "late"}};
  auto first = rank("0"), second = rank("1");
  for (auto* each : {&node, &command, first.get(), second.get()})
    CHECK(each->await_output("waits for " + where + ", which accepts connections and does not answer"));
  launched_program passes{{"sleep", "6"}};
  CHECK(passes.finish() == 0);
  for (auto* each : {&node, &command, first.get(), second.get()})
    CHECK_FALSE(each->status);
  REQUIRE(::kill(coordinator.child.pid(), SIGCONT) == 0);
  for (auto* each : {&command, first.get(), second.get()}) {
    CHECK(each->finish() == 0);
    CAPTURE(each->error);
  }
  CHECK(contains(first->output, "1 of 2: the sum is 3"));
  CHECK(contains(second->output, "2 of 2: the sum is 3"));
  CHECK_FALSE(node.status);
  ::kill(node.child.pid(), SIGTERM);
  CHECK(node.finish() == 0);
}

TEST_CASE(
  "late joins: whoever waits for a process that is killed ends with it, and who is silent for longer is named") {
  temporary_directory dir;
  const auto port_file = (dir.path() / "port").string();
  launched_program coordinator{{RINGMASTER_PROGRAM, "coordinator", "--port", "0", "--port-file", port_file}};
  REQUIRE(coordinator.wait_until([&] { return std::filesystem::exists(port_file); }));
  std::string port;
  std::ifstream{port_file} >> port;
  REQUIRE(::kill(coordinator.child.pid(), SIGSTOP) == 0);
  launched_program command{{RINGMASTER_PROGRAM, "status", "127.0.0.1:" + port, "--timeout", "300ms"}};
  CHECK(command.finish() == 1);
  CHECK(contains(command.error, "there is no coordinator: 127.0.0.1:" + port
                                  + " accepts connections, and has not answered in 0.3 s: it stands still, or"));
  launched_program node{{RINGMASTER_PROGRAM, "node", "--join", "127.0.0.1:" + port, "--devices", "1"}};
  CHECK(node.await_output("waits for 127.0.0.1:" + port));
  REQUIRE(::kill(coordinator.child.pid(), SIGKILL) == 0);
  CHECK(node.finish() == 1);
  CAPTURE(node.error);
  CHECK((contains(node.error, "it closed the connection before it had answered; its process may have ended")
         || contains(node.error, "nobody listens there: is the process running"))); // between two tries
}
