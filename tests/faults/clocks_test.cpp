// The wall clock is set while processes run: tests/programs/clock_shift.cpp, preloaded into them.
#include "tests/support/processes/launched_program.hpp"
#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace ringmaster::launch;

namespace {

struct shifted_clock {
  void set(int seconds) const {
    std::ofstream{file + ".new"} << seconds;
    std::filesystem::rename(file + ".new", file);
  }

  std::vector<std::string> around(const std::vector<std::string>& command) const {
    std::vector<std::string> result{"env", "LD_PRELOAD=" + library, "CLOCK_SHIFT_FILE=" + file};
    result.insert(result.end(), command.begin(), command.end());
    return result;
  }

  ringmaster::test::temporary_directory dir;
  const std::string file = (dir.path() / "seconds").string();
  const std::string library
    = (std::filesystem::path{RINGMASTER_PROGRAM}.parent_path() / "tests" / "libclock_shift.so").string();
};

void let_pass(const char* seconds) {
  launched_program sleep{{"sleep", seconds}};
  CHECK(sleep.finish() == 0);
}

} // namespace

TEST_CASE("clocks: a program sees the wall clock that the test sets, and may not wait by it") {
  shifted_clock clock;
  clock.set(-360000);
  launched_program shows{clock.around({"date", "-u", "+%s"})};
  CHECK(shows.finish() == 0);
  const auto off = std::chrono::system_clock::now() - std::chrono::system_clock::from_time_t(std::stoll(shows.output));
  CHECK(off > std::chrono::hours{99});
}

TEST_CASE("clocks: operations go on while the wall clock is set back and forward, and no process waits by it") {
  shifted_clock clock;
  const auto conf = (clock.dir.path() / "conf").string();
  std::ofstream{conf} << "[suspicion]\nlate-after=10s\npause-max=15s\n"; // the machine may be busy
  launched_program run{clock.around({RINGMASTER_CAF_RUN, "--conf", conf, "--binary", RINGMASTER_PROGRAM, "--local", "4",
                                     "--coordinator-restarts", "0", // RocksDB, for the store, waits by the wall clock
                                     "--", RINGMASTER_PROCESS_PAUSE, "none", "4"})};
  const auto begun = run.await_output("operations fly");
  CAPTURE(run.output);
  CAPTURE(run.error);
  REQUIRE(begun);
  for (int seconds : {-30, 30, -3600, 3600}) {
    clock.set(seconds);
    let_pass("0.7");
  }
  const auto status = run.finish();
  CAPTURE(run.output);
  CAPTURE(run.error);
  CHECK(status == 0);
  CHECK(run.output.find("nothing is lost") != std::string::npos);
  CHECK(run.error.find("clock_shift: ") == std::string::npos);
}

TEST_CASE("clocks: a coordinator, a node and a training end on SIGTERM though the wall clock was set back an hour") {
  shifted_clock clock;
  const auto port_file = (clock.dir.path() / "port").string();
  launched_program coordinator{
    clock.around({RINGMASTER_PROGRAM, "coordinator", "--port", "0", "--port-file", port_file})};
  REQUIRE(coordinator.wait_until([&] { return std::filesystem::exists(port_file); }));
  std::string port;
  std::ifstream{port_file} >> port;
  const auto where = "127.0.0.1:" + port;
  launched_program node{clock.around({RINGMASTER_PROGRAM, "node", "--join", where, "--devices", "2"})};
  launched_program info{clock.around({RINGMASTER_PROGRAM, "info", "--join", where, "--devices", "2"})};
  CHECK(info.finish() == 0);
  launched_program training{clock.around({RINGMASTER_PROGRAM, "train", "--join", where, "--ranks", "2", "--samples",
                                          "4000", "--epochs", "100000"})};
  let_pass("1");
  for (int seconds : {3600, -3600}) {
    clock.set(seconds);
    let_pass("0.5");
  }
  for (auto* each : {&training, &node, &coordinator}) {
    const auto asked = std::chrono::steady_clock::now();
    ::kill(each->child.pid(), SIGTERM);
    const auto status = each->finish();
    CAPTURE(each->output);
    CAPTURE(each->error);
    CHECK(status >= 0);
    CHECK(std::chrono::steady_clock::now() - asked < std::chrono::seconds{10});
    CHECK(each->error.find("clock_shift: ") == std::string::npos);
  }
}
