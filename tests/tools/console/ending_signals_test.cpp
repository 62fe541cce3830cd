#include "tools/console/ending_signals.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <semaphore>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace ringmaster;

TEST_CASE("ending signals: SIGHUP is one, unless it is ignored when the program begins") { // before others here ask
  for (bool ignored : {true, false}) {
    CAPTURE(ignored);
    const auto child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      std::signal(SIGHUP, ignored ? SIG_IGN : SIG_DFL);
      block_ending_signals();
      ::raise(SIGHUP);
      ::_exit(ending_signal());
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == (ignored ? 0 : SIGHUP));
  }
}

TEST_CASE("ending signals: one that reaches a thread which a library has started before is seen, too") {
  std::binary_semaphore blocked{0}, seen{0};
  std::thread foreign{[&] {
    blocked.acquire();
    ::raise(SIGTERM); // this thread
    seen.release();
  }};
  block_ending_signals();
  CHECK(ending_signal() == 0);
  blocked.release();
  seen.acquire();
  CHECK(ending_signal() == SIGTERM);
  CHECK(ending_signal() == 0);
  ::raise(SIGINT); // where it is blocked
  CHECK(ending_signal() == SIGINT);
  CHECK(ending_signal() == 0);
  foreign.join();
}
