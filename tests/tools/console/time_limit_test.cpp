#include "tools/console/ending_signals.hpp"

#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>

using namespace ringmaster;

TEST_CASE("time limit: what never ends is ended, with a sentence") {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  const auto child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    time_limit limit{std::chrono::milliseconds{10}, "it went round and round"};
    for (volatile bool forever = true; forever;) {
    }
    _exit(0);
  }
  close(ends[1]);
  std::string said(64, '\0');
  said.resize(static_cast<size_t>(std::max<ssize_t>(read(ends[0], said.data(), said.size()), 0)));
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
  CHECK(said == "it went round and round\n");
}

TEST_CASE("time limit: what ends in time goes on") {
  { time_limit limit{std::chrono::minutes{1}, "never said"}; }
  itimerval left{};
  getitimer(ITIMER_REAL, &left);
  CHECK(left.it_value.tv_sec == 0);
}
