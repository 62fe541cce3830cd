// Real processes that start while the coordinator's process is stopped.
#include "tests/faults/started_coordinator.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <memory>

using namespace ringmaster::launch;
using namespace ringmaster::test;

TEST_CASE(
  "late joins: a node, a command and ranks that start while the coordinator is stopped wait, and say for what") {
  started_coordinator coordinator;
  REQUIRE(::kill(coordinator.pid(), SIGSTOP) == 0);
  auto rank = [&](const char* number) {
    return std::make_unique<launched_program>(
      std::vector<std::string>{"env", "RINGMASTER_WORLD_SIZE=2", std::string{"RINGMASTER_RANK="} + number,
                               std::string{"RINGMASTER_LOCAL_RANK="} + number,
                               "RINGMASTER_COORDINATOR=" + coordinator.where, RINGMASTER_RANK_PROGRAM, "sum"});
  };
  launched_program node{{RINGMASTER_PROGRAM, "node", "--join", coordinator.where, "--devices", "1", "--name", "late"}};
  launched_program command{{RINGMASTER_PROGRAM, "info", "--join", coordinator.where, "--nodes", "late"}};
  auto first = rank("0"), second = rank("1");
  for (auto* each : {&node, &command, first.get(), second.get()})
    CHECK(each->await_output("waits for " + coordinator.where + ", which accepts connections and does not answer"));
  launched_program passes{{"sleep", "6"}};
  CHECK(passes.finish() == 0);
  for (auto* each : {&node, &command, first.get(), second.get()})
    CHECK_FALSE(each->status);
  REQUIRE(::kill(coordinator.pid(), SIGCONT) == 0);
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

TEST_CASE("late joins: a process that waits for one that is killed ends, and one that is silent for longer is named") {
  started_coordinator coordinator;
  REQUIRE(::kill(coordinator.pid(), SIGSTOP) == 0);
  launched_program command{{RINGMASTER_PROGRAM, "status", coordinator.where, "--timeout", "300ms"}};
  CHECK(command.finish() == 1);
  CHECK(contains(command.error, "there is no coordinator: " + coordinator.where
                                  + " accepts connections, and has not answered in 0.3 s: it is stopped, or"));
  launched_program node{{RINGMASTER_PROGRAM, "node", "--join", coordinator.where, "--devices", "1"}};
  CHECK(node.await_output("waits for " + coordinator.where));
  REQUIRE(::kill(coordinator.pid(), SIGKILL) == 0);
  CHECK(node.finish() == 1);
  CAPTURE(node.error);
  CHECK((contains(node.error, "it closed the connection before it had answered; its process may have ended")
         || contains(node.error, "no process listens there: is it running"))); // between two tries
}
