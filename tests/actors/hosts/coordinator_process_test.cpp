#include "actors/hosts/coordinator_process.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

using namespace ringmaster;

namespace {

/// A process that is paused, with the identity of a coordinator in it.
struct paused_process {
  paused_process() {
    int pipe[2];
    REQUIRE(::pipe(pipe) == 0);
    pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      proto::ClusterIdentity own;
      name_this_process(own);
      const uint64_t facts[]{own.host_id(), own.started()};
      if (::write(pipe[1], facts, sizeof facts) == sizeof facts)
        ::raise(SIGSTOP);
      ::_exit(0);
    }
    uint64_t facts[2] = {};
    REQUIRE(::read(pipe[0], facts, sizeof facts) == sizeof facts);
    ::close(pipe[0]);
    ::close(pipe[1]);
    int status = 0;
    REQUIRE(::waitpid(pid, &status, WUNTRACED) == pid);
    REQUIRE(WIFSTOPPED(status));
    identity.set_incarnation(3);
    identity.set_host_id(facts[0]);
    identity.set_started(facts[1]);
    identity.set_pid(static_cast<uint32_t>(pid));
  }
  ~paused_process() {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }

  bool runs() const {
    siginfo_t how{};
    return ::waitid(P_PID, static_cast<id_t>(pid), &how, WEXITED | WNOHANG | WNOWAIT) == 0 && how.si_pid == 0;
  }

  pid_t pid = 0;
  proto::ClusterIdentity identity;
};

} // namespace

TEST_CASE("coordinator_process: one that was replaced is killed, also while it is paused") {
  paused_process former;
  REQUIRE(former.identity.started() != 0);
  CHECK(end_replaced_coordinator(former.identity));
  siginfo_t how{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(former.pid), &how, WEXITED | WNOWAIT) == 0);
  CHECK(how.si_code == CLD_KILLED);
  CHECK_FALSE(end_replaced_coordinator(former.identity)); // it has ended, and waits for its parent
}

TEST_CASE("coordinator_process: another host's, another process with its number, and this one stay") {
  paused_process other;
  auto identity = other.identity;
  identity.set_started(other.identity.started() + 1);
  CHECK_FALSE(end_replaced_coordinator(identity));
  identity = other.identity;
  identity.set_host_id(other.identity.host_id() + 1);
  CHECK_FALSE(end_replaced_coordinator(identity));
  CHECK_FALSE(end_replaced_coordinator({}));
  CHECK(other.runs());
  proto::ClusterIdentity own;
  name_this_process(own);
  CHECK_FALSE(end_replaced_coordinator(own));
}
