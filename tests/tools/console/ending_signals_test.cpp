#include "tools/console/ending_signals.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <semaphore>
#include <thread>

using namespace ringmaster;

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
