#include "tools/processes/child_process.hpp"

#include "messages/errc.hpp"
#include "tests/support/processes/launched_program.hpp"
#include "tools/launch/program_processes.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>

using namespace ringmaster;
using namespace ringmaster::launch;

TEST_CASE("child_process: says why a program cannot be executed") {
  auto child = child_process::start({.arguments = {"/nowhere/at/all"}});
  REQUIRE_FALSE(child);
  CHECK(render(child.error()) == "cannot start /nowhere/at/all: No such file or directory");
  CHECK(code_of(child.error()) == errc::io_error);
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1); // nothing is left to be reaped
}

TEST_CASE("child_process: keeps the two outputs apart") {
  launched_program program({"sh", "-c", "echo out; echo err >&2; exit 3"});
  CHECK(program.finish() == 3);
  CHECK(program.output == "out\n");
  CHECK(program.error == "err\n");
}

TEST_CASE("child_process: adds to the environment and replaces in it") {
  ::setenv("CHILD_PROCESS_TEST", "old", 1);
  auto* check = "test \"$CHILD_PROCESS_TEST$ADDED$HOME\" = \"newmore$HOME\"";
  auto child = child_process::start({.arguments = {"sh", "-c", check},
                                     .environment = {{"CHILD_PROCESS_TEST", "new"}, {"ADDED", "more"}}});
  ::unsetenv("CHILD_PROCESS_TEST");
  REQUIRE(child);
  int raw = -1;
  ::waitpid(child->pid(), &raw, 0);
  CHECK(raw == 0);
}

TEST_CASE("child_process: has no input and a group of its own, and is read without blocking") {
  auto child = child_process::start({.arguments = {"sh", "-c", "read x || exit 6"}});
  REQUIRE(child);
  CHECK(::getpgid(child->pid()) == child->pid());
  CHECK((::fcntl(child->standard_output().get(), F_GETFL) & O_NONBLOCK) != 0);
  int raw = -1;
  ::waitpid(child->pid(), &raw, 0);
  CHECK(exit_status{raw}.shell_status() == 6);
}

TEST_CASE("child_process: inherits no pipe of another child") {
  launched_program first({"ls", "/proc/self/fd"});
  launched_program second({"ls", "/proc/self/fd"});
  CHECK(first.finish() == 0);
  CHECK(second.finish() == 0);
  CHECK(first.output == second.output);
}

TEST_CASE("child_process: a signal reaches the whole group") {
  launched_program program({"sh", "-c", "sleep 1000 & echo $!; wait"});
  CHECK(program.await_output("\n"));
  auto grandchild = static_cast<pid_t>(std::stol(program.output));
  program.child.signal(SIGTERM);
  CHECK(program.finish() == 128 + SIGTERM);
  CHECK(program.wait_until([&] { return has_ended(grandchild); }));
}

TEST_CASE("child_process: stopping ends the input where it is a pipe") {
  launched_program program({"sh", "-c", "cat; echo over; exit 5"});
  program.child.stop();
  CHECK(program.finish() == 5);
  CHECK(program.output == "over\n");
}

TEST_CASE("exit_status: tells a status from a signal") {
  exit_status zero{0}, three{3 << 8}, killed{SIGKILL};
  CHECK(zero.success());
  CHECK(three.describe() == "exited with status 3");
  CHECK(three.shell_status() == 3);
  CHECK_FALSE(killed.success());
  CHECK(killed.describe() == "was ended by signal 9 (Killed)");
  CHECK(killed.shell_status() == 137);
}

TEST_CASE("program_path: looks in the search path, then in the last directory") {
  script_directory first, last;
  auto only_last = last.write("a", "");
  CHECK(*find_program("a", first.path(""), last.path("")) == last.path("") + "/a");
  first.write("a", "");
  CHECK(*find_program("a", "/nowhere:" + first.path(""), last.path("")) == first.path("") + "/a");
  CHECK(*find_program(only_last, "", "") == only_last);
  CHECK(render(find_program("b", "/x", "/y").error()) == "there is no program b in PATH nor in /y");
  CHECK(render(find_program("./b", "/x", "/y").error()) == "there is no program ./b at that path");
  std::filesystem::permissions(only_last, std::filesystem::perms::owner_read);
  CHECK(render(find_program(only_last, "", "").error()) == only_last + " is not executable: chmod +x makes it so");
}
