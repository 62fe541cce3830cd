#pragma once

#include <csignal>
#include <cstdlib>
#include <doctest/doctest.h>
#include <functional>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ringmaster::test {

/// What a process that runs `body` writes to standard error before it aborts. The test case fails if it ends otherwise.
/// `body` runs in a child process of one thread: it must not wait for threads of this one.
inline std::string log_of_abort(const std::function<void()>& body) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const auto child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    ::signal(SIGABRT, SIG_DFL); // doctest's own handler would report a failed test case
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    body();
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string result;
  char some[4096];
  for (ssize_t got; (got = ::read(ends[0], some, sizeof some)) > 0;)
    result.append(some, static_cast<size_t>(got));
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK_MESSAGE((WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT), "the process did not abort: " << result);
  return result;
}

} // namespace ringmaster::test
