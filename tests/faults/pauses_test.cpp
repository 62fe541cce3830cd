// Real processes that stand still for a while: nobody dies of it.
#include "tests/support/processes/launched_program.hpp"

#include <doctest/doctest.h>

#include <memory>

using namespace ringmaster::launch;

TEST_CASE("pauses: any process may be stopped for a second, coordinator and client for ten, and nothing is lost") {
  struct pause {
    const char* who;
    const char* seconds;
    std::unique_ptr<launched_program> run{};
  };
  // All at once: they wait most of the time.
  pause all[] = {{"node", "1"}, {"coordinator", "1"}, {"client", "1"}, {"coordinator", "10"}, {"client", "10"}};
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
