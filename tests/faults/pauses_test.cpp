// Real processes that are stopped for a while: nothing is lost.
#include "tests/support/processes/launched_program.hpp"

#include "tests/support/processes/process_tree.hpp"
#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <memory>

using namespace ringmaster::launch;

namespace {

/// Limits of 3 s rather than 20 s, for a test; those of suspicion are for a busy machine, and below the pause.
std::string short_limits(const ringmaster::test::temporary_directory& dir) {
  const auto file = (dir.path() / "conf").string();
  std::ofstream{file} << "[middleman]\nconnection-timeout=3s\n[node]\norphan-timeout=0s\n"
                         "[suspicion]\nlate-after=2s\npause-max=3s\n";
  return file;
}

/// All processes of a job at once, the launcher included, as a job is suspended or Ctrl-Z does.
void pause_all(const launched_program& job, const char* seconds) {
  const auto all = processes_of(job.child.pid());
  signal_all(all, SIGSTOP);
  launched_program passes{{"sleep", seconds}};
  passes.finish();
  signal_all(all, SIGCONT);
}

} // namespace

TEST_CASE("pauses: any process may be stopped for half a second, coordinator and client for ten, and nothing is lost") {
  struct pause {
    const char* who;
    const char* seconds;
    std::unique_ptr<launched_program> run{};
  };
  // All at once: they wait most of the time.
  pause all[] = {{"node", "0.5"}, {"coordinator", "0.5"}, {"client", "0.5"}, {"coordinator", "10"}, {"client", "10"}};
  for (auto& x : all)
    x.run = std::make_unique<launched_program>(std::vector<std::string>{RINGMASTER_CAF_RUN, "--binary",
                                                                        RINGMASTER_PROGRAM, "--local", "4", "--",
                                                                        RINGMASTER_PROCESS_PAUSE, x.who, x.seconds});
  for (auto& x : all) {
    CAPTURE(x.who);
    CAPTURE(x.seconds);
    auto status = x.run->finish();
    CAPTURE(x.run->output);
    CAPTURE(x.run->error);
    CHECK(status == 0);
    CHECK(x.run->output.find("nothing is lost") != std::string::npos);
  }
}

TEST_CASE("pauses: all processes of a cluster, paused together for longer than any of their limits, lose nothing") {
  ringmaster::test::temporary_directory dir;
  launched_program run{{RINGMASTER_CAF_RUN, "--conf", short_limits(dir), "--binary", RINGMASTER_PROGRAM, "--local", "4",
                        "--", RINGMASTER_PROCESS_PAUSE, "none", "8"}};
  const auto begun = run.await_output("operations fly");
  CAPTURE(run.output);
  CAPTURE(run.error);
  REQUIRE(begun);
  pause_all(run, "6");
  const auto status = run.finish();
  CAPTURE(run.output);
  CAPTURE(run.error);
  CHECK(status == 0);
  CHECK(run.output.find("nothing is lost") != std::string::npos);
}

TEST_CASE("pauses: a training whose processes were all paused together goes on, and loses no rank") {
  ringmaster::test::temporary_directory dir;
  const auto conf = short_limits(dir);
  const auto model = dir.path() / "model";
  launched_program run{{RINGMASTER_CAF_RUN, "--conf", conf, "--ranks", "3", "--", RINGMASTER_PROGRAM, "train", "--conf",
                        conf, "--samples", "600", "--sizes", "32-16", "--epochs", "120", "--checkpoint",
                        model.string()}};
  const auto begun = run.wait_until([&] {
    std::error_code none_yet;
    const std::filesystem::directory_iterator files{model, none_yet};
    return !none_yet && files != std::filesystem::directory_iterator{};
  });
  CAPTURE(run.output);
  CAPTURE(run.error);
  REQUIRE(begun);
  pause_all(run, "6");
  const auto status = run.finish();
  CAPTURE(run.output);
  CAPTURE(run.error);
  CHECK(status == 0);
  CHECK((run.output + run.error).find(" lost") == std::string::npos);
}
